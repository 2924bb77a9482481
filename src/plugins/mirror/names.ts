// Reads the list of a prefix's handles from its server, page by page.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { ServiceError } from '../../errors.js';
import type { HandleRef } from '../../handle/handle.js';
import { RESPONSE_CODE } from '../../handle/outcome.js';
import type { ListAnswer } from '../../upstream/reply.js';
import { isTooBusy } from '../../upstream/response.js';

export interface HandleList {
  names: ReadonlySet<string>;
  /** The listed handles, in the spelling and order of the server; empty unless the list is whole. */
  handles: readonly string[];
  /** Whether each page reported as many handles as were read; otherwise `names` may lack some. */
  isWhole: boolean;
}

interface PrefixListing {
  /** Upper-case prefix. */
  prefix: string;
  maxHandles: number;
  refOf: (text: string) => HandleRef;
  /** Keys of the last list. They are kept until a pass is whole. */
  previous: ReadonlySet<string>;
  readPage: (page: number) => Promise<ListAnswer>;
}

/** Handles per page; a page is then smaller than 1 MiB with usual names. */
export const PAGE_SIZE = 10_000;

const MAX_PASSES = 3;

/** Maximum length of all names, per handle of `maxHandles`: usual names have 20 to 80 characters. */
const CHARS_PER_HANDLE = 100;
const MIN_MAX_CHARS = 1024 * 1024;

/** A set of names, bounded in number and in length. */
class BoundedNames {
  readonly keys = new Set<string>();
  #charsLeft: number;

  constructor(private readonly maxHandles: number) {
    this.#charsLeft = Math.max(MIN_MAX_CHARS, maxHandles * CHARS_PER_HANDLE);
  }

  isFull(): boolean {
    return this.keys.size >= this.maxHandles || this.#charsLeft <= 0;
  }

  /** Adds a key; `chars`: characters in memory for the name. Returns false if it is known or there is no room. */
  add(key: string, chars: number): boolean {
    if (this.isFull() || this.keys.has(key)) return false;
    this.keys.add(key);
    this.#charsLeft -= chars;
    return true;
  }
}

/** Thrown if the server refuses to list. The message contains the status and the response code. */
export class ListRefused extends Error {
  constructor(
    message: string,
    readonly remedy?: string,
  ) {
    super(message);
  }
}

/** Lists the handles: of all passes if none is whole. @throws ListRefused, ServiceError */
export async function listNames(listing: PrefixListing): Promise<HandleList> {
  const names = new BoundedNames(listing.maxHandles);
  const keep = (key: string): void => {
    names.add(key, key.length);
  };
  for (let pass = 0; pass < MAX_PASSES; pass++) {
    const { counts, found, handles } = await readPages(listing);
    const [count, ...others] = counts;
    if (others.length === 0 && found.keys.size === count)
      return { names: found.keys, handles, isWhole: true };
    await forEachInTurns(found.keys, keep);
    if (found.isFull()) break;
  }
  await forEachInTurns(listing.previous, keep);
  return { names: names.keys, handles: [], isWhole: false };
}

/** Reads one pass. `counts` contains each different number of handles that the pages report. */
async function readPages({ prefix, maxHandles, refOf, readPage }: PrefixListing) {
  const found = new BoundedNames(maxHandles);
  const spelled: string[] = [];
  const counts = new Set<number>();
  const lastPage = Math.ceil(maxHandles / PAGE_SIZE);
  for (let page = 0; page <= lastPage; page++) {
    const { handles, totalCount } = handlesIn(await readPage(page));
    const known = found.keys.size;
    counts.add(totalCount);
    await forEachInTurns(handles, (text) => {
      const handle = refOf(text);
      // Most servers list handles as they are in the keys: such a name is in memory once.
      const isKey = handle.text === handle.key;
      const chars = handle.key.length + (isKey ? 0 : handle.text.length);
      if (handle.prefix === prefix && found.add(handle.key, chars))
        spelled.push(isKey ? handle.key : handle.text);
    });
    // A server without pages sends the whole list each time.
    if (handles.length !== PAGE_SIZE || found.keys.size === known || found.isFull()) break;
  }
  return { counts, found, handles: spelled };
}

/**
 * Returns the handles of a page (recording "list: page=0&pageSize=3").
 *
 * @throws ListRefused; ServiceError UPSTREAM_FAILED if the server fails or is busy, which refuses nothing
 */
function handlesIn({ status, responseCode, members, handles }: ListAnswer) {
  if (status === 200 && responseCode === RESPONSE_CODE.success && handles !== undefined)
    return { handles, totalCount: Number(members['totalCount']) };
  const detail = `status ${status}, response code ${responseCode ?? 'none'}`;
  const isFailure = status >= 500 && status !== NOT_IMPLEMENTED;
  throw isFailure || isTooBusy(status)
    ? new ServiceError('UPSTREAM_FAILED', { detail })
    : new ListRefused(detail, REMEDIES[status]);
}

const NOT_IMPLEMENTED = 501;

/** Remedies by the status of a refusal. */
const REMEDIES: Readonly<Record<number, string>> = {
  401: 'check mirror.user and mirror.password, or set them',
  403: 'give mirror.user the right to list handles (list_handles in an HS_ADMIN of the prefix)',
  [NOT_IMPLEMENTED]: 'remove the prefix from mirror.prefixes: its server has no lists',
};

/** Handles per turn of the event loop, which takes a few milliseconds. */
const NAMES_PER_TURN = 2000;

/** Calls `run` for each item, and lets requests run in between. */
async function forEachInTurns<T>(items: Iterable<T>, run: (item: T) => void): Promise<void> {
  let done = 0;
  for (const item of items) {
    run(item);
    if (++done % NAMES_PER_TURN === 0) await nextTurn();
  }
}
