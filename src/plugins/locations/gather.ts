// Gathers the location lists of a handle: its own, included lists, and those of its prefix.
import { GLOBAL_NAMESPACE, type HandleRef } from '../../handle/handle.js';
import type { FromEntry } from '../../resolver/resolution.js';
import type { Caller } from '../../upstream/caller.js';
import type { RedirectRequest } from '../../redirect/extension.js';
import { type RedirectValues, textsOf } from '../../redirect/values.js';
import {
  type HandleLists,
  type Include,
  type LocationList,
  MAX_ELEMENTS,
  type ParseLocationList,
  TYPES,
  countElements,
  isYes,
  listsIn,
} from './location-list.js';
import {
  NO_NAMESPACE,
  type Namespace,
  type OtherRecords,
  type PrefixRecord,
  type PrefixRecords,
  namespaceOf,
  toPrefixHandle,
} from './other-records.js';

export interface GatheredLists {
  own: HandleLists;
  /** Lists included by the record, one array per include level. */
  included: readonly HandleLists[][];
  prefix: readonly HandleLists[];
  /** Lists included by the prefix lists, one array per include level. */
  prefixIncluded: readonly HandleLists[][];
}

/** HDLProxy's limit, which also ends a list that includes itself (recording "include: itself"). */
const MAX_LEVELS = 21;
/** HDLProxy has no limit: a record that includes itself twice yields two million lists there. */
const MAX_INCLUDED = 200;
const READ_AT_ONCE = 10;

export async function gatherLists(own: HandleLists, reader: ListReader): Promise<GatheredLists> {
  const keep = createBound(own);
  const included = await followIncludes([own], { reader, keep });
  const settings = createSettings([own, ...included.flat()].flatMap(({ lists }) => lists));
  const prefix = keep(await readPrefixLists(settings, reader));
  const prefixIncluded = await followIncludes(prefix, { reader, keep });
  return { own, included, prefix, prefixIncluded };
}

type KeepWithinBound = (level: readonly HandleLists[]) => HandleLists[];

/** Creates a filter that drops lists over the bound. The record's own lists count, but are never dropped. */
function createBound(own: HandleLists): KeepWithinBound {
  let left = MAX_ELEMENTS - countElements(own);
  return (level) => level.filter((handle) => (left -= countElements(handle)) >= 0);
}

/** Returns a setting from the first list that has it. */
export type Settings = (name: string) => string | undefined;

export const createSettings =
  (lists: readonly LocationList[]): Settings =>
  (name) =>
    lists.find(({ settings }) => settings.has(name))?.settings.get(name);

/** Returns the prefix's lists, then the global lists, or else those of the handle in `nshdl`. */
async function readPrefixLists(settings: Settings, reader: ListReader): Promise<readonly HandleLists[]> {
  if (isYes(settings('no_nslocs'))) return [];
  const override = textIn(settings('overridePrefix'));
  const own = await reader.readNamespace(override === '' ? undefined : toPrefixHandle(override));
  const global = own.usesGlobal ? await reader.readNamespace(GLOBAL_NAMESPACE) : NO_NAMESPACE;
  const ofFile = [own, global].flatMap(({ listOfFile = [] }) => listOfFile);
  const named = [...own.listHandles, ...global.listHandles];
  const otherwise = textIn(settings('nshdl'));
  const isOther = named.length === 0 && ofFile.length === 0 && otherwise !== '';
  const handles = isOther ? [otherwise] : named.slice(0, MAX_INCLUDED);
  return [...ofFile, ...(await readAll(handles, reader))];
}

const textIn = (setting: string | undefined): string => setting?.trim() ?? '';

async function followIncludes(
  first: readonly HandleLists[],
  { reader, keep }: { reader: ListReader; keep: KeepWithinBound },
): Promise<HandleLists[][]> {
  const levels: HandleLists[][] = [];
  let left = MAX_INCLUDED;
  let includes = includesOf(first, left);
  while (includes.length > 0 && levels.length < MAX_LEVELS) {
    const handles = await includedHandles(includes, reader);
    const read = await readAll(handles.slice(0, left), reader);
    left -= read.length;
    const kept = keep(read);
    if (kept.length > 0) levels.push(kept);
    includes = includesOf(kept, left);
  }
  return levels;
}

/** Returns the first `most` includes; each of 200 lists may have thousands. */
function includesOf(level: readonly HandleLists[], most: number): Include[] {
  const found: Include[] = [];
  for (const { includes } of level.flatMap(({ lists }) => lists))
    found.push(...includes.slice(0, most - found.length));
  return found;
}

async function includedHandles(includes: readonly Include[], reader: ListReader): Promise<string[]> {
  const found = await mapInGroups(includes, async ({ kind, handle }) =>
    kind === 'handle' ? [handle] : (await reader.readIncludedNamespace(toPrefixHandle(handle))).listHandles,
  );
  return found.flat();
}

const readAll = (handles: readonly string[], reader: ListReader): Promise<HandleLists[]> =>
  mapInGroups(handles, (handle) => reader.readLists(handle));

/** Runs the groups in sequence, to bound memory: each of 200 records may be a megabyte long. */
async function mapInGroups<Given, Made>(
  all: readonly Given[],
  make: (one: Given) => Promise<Made>,
): Promise<Made[]> {
  const made: Made[] = [];
  for (let at = 0; at < all.length; at += READ_AT_ONCE)
    made.push(...(await Promise.all(all.slice(at, at + READ_AT_ONCE).map(make))));
  return made;
}

export interface ListSources {
  refOf: (text: string) => HandleRef;
  parseList: ParseLocationList;
  values: RedirectValues;
  otherRecords: OtherRecords;
  prefixRecords: PrefixRecords;
}

/** A request whose prefix record is already read. */
export interface ReadingRequest extends RedirectRequest {
  /** A prefix handle, for example 0.NA/21.T11998, and its record. */
  prefix: { handle: HandleRef; record: PrefixRecord | undefined };
  /** A caller exempt from miss accounting: the client did not request the prefix records. */
  unjudged: Caller | undefined;
}

/** Maximum upstream reads per request, enough for a chain of 21 levels. Records in memory do not count. */
const MAX_ASKED = 25;
/** Maximum total size of a request's records. Real lists have a few kilobytes. */
const MAX_CHARS = 4 * 1024 * 1024;

const NOTHING: HandleLists = { lists: [], links: [], headers: [] };

/**
 * Reads lists of other handles, each once per request; without a readable record there are none (recordings
 * "include: absent handle", …).
 */
export class ListReader {
  readonly used: FromEntry[] = [];
  chars = 0;
  /** False when a skipped handle may be readable later. */
  isComplete = true;
  /** Whether any record except those of the prefix and 0.NA/0.NA was read. */
  readsOthers = false;
  readonly #records = new Map<string, Promise<FromEntry | undefined>>();
  readonly #lists = new Map<string, Promise<HandleLists>>();
  /** Elements of the lists that were read. */
  #elements = 0;
  #asksLeft = MAX_ASKED;

  constructor(
    private readonly sources: ListSources,
    private readonly request: ReadingRequest,
  ) {}

  readLists(name: string): Promise<HandleLists> {
    this.readsOthers = true;
    const handle = this.sources.refOf(name);
    return once(this.#lists, handle.key, async () => {
      // The bound of `gatherLists` would drop its lists.
      const record = this.#elements > MAX_ELEMENTS ? undefined : await this.#read(handle);
      if (record === undefined) return NOTHING;
      this.used.push(record);
      const { values, parseList } = this.sources;
      const { runSteps } = this.request.context;
      const found = await values.read(record.entry, runSteps);
      const lists = await runSteps(listsIn(textsOf(found, TYPES), parseList), record.entry.values.length);
      this.#elements += countElements(lists);
      return lists;
    });
  }

  /** Reads the namespace of a prefix, by default that of the record's prefix. */
  async readNamespace(handle = this.request.prefix.handle): Promise<Namespace> {
    const { prefixRecords } = this.sources;
    const { prefix, unjudged } = this.request;
    const isOwn = handle.key === prefix.handle.key;
    this.readsOthers ||= !isOwn && handle.key !== GLOBAL_NAMESPACE.key;
    const known = isOwn ? prefix.record : undefined;
    const { namespace, record, hasFailed } = known ?? (await prefixRecords.read(handle, unjudged));
    this.isComplete &&= !hasFailed;
    return this.#noted(record, namespace);
  }

  async readIncludedNamespace(handle: HandleRef): Promise<Namespace> {
    this.readsOthers = true;
    const record = await this.#read(handle);
    return this.#noted(record, namespaceOf(record?.entry));
  }

  /** A prefix record without lists may make the redirect stale, but never shortens its TTL. */
  #noted(record: FromEntry | undefined, namespace: Namespace): Namespace {
    const counts = namespace.listHandles.length > 0 || record?.stale !== undefined;
    if (record !== undefined && counts) this.used.push(record);
    return namespace;
  }

  #read(handle: HandleRef): Promise<FromEntry | undefined> {
    return once(this.#records, handle.key, async () => {
      if (this.chars > MAX_CHARS) return undefined;
      const record = await this.#find(handle);
      this.chars += record?.entry.values.length ?? 0;
      return this.chars > MAX_CHARS ? undefined : record;
    });
  }

  async #find(handle: HandleRef): Promise<FromEntry | undefined> {
    const { otherRecords } = this.sources;
    const { context, query } = this.request;
    const { authoritative } = query;
    let found = authoritative && this.#asksLeft > 0 ? undefined : otherRecords.known(handle);
    if (found === undefined && this.#asksLeft > 0) {
      this.#asksLeft -= 1;
      found = await otherRecords.ask(handle, { authoritative, caller: context.caller });
    }
    if (found !== undefined && !found.hasFailed) return found.record;
    this.isComplete = false;
    return undefined;
  }
}

function once<T>(made: Map<string, Promise<T>>, key: string, make: () => Promise<T>): Promise<T> {
  const known = made.get(key) ?? make();
  made.set(key, known);
  return known;
}
