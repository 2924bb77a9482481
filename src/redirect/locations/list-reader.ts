// Reads the lists of other handles for one request, and notes the records that took part.
import type { FromEntry } from '../../resolver/resolution.js';
import { readValues } from '../../resolver/parsed-records.js';
import type { ResolveOptions } from '../../resolver/resolver.js';
import type { Steps } from '../../time-slicer.js';
import type { ListReader } from './gather.js';
import { type HandleLists, listsIn } from './handle-lists.js';
import type { ParseLocationList } from './location-list.js';
import { GLOBAL_NAMESPACE, NO_NAMESPACE, type Namespace } from './namespace.js';
import type { OtherRecords } from './other-records.js';
import { type PrefixRecord, type PrefixRecords, namespaceOf } from './prefix-records.js';

export interface ListReaderDeps {
  keyOf: (handle: string) => string;
  parseList: ParseLocationList;
  otherRecords: Pick<OtherRecords, 'known' | 'ask'>;
  /** Undefined when lists of prefixes are turned off. */
  prefixRecords: PrefixRecords | undefined;
}

/** The record of its prefix, read before. */
export interface PrefixOfHandle {
  /** Such as 0.NA/21.T11998. */
  handle: string;
  record: PrefixRecord | undefined;
}

interface ReadingRequest {
  authoritative: boolean;
  prefix: PrefixOfHandle;
  /** Judged by its misses. */
  caller: ResolveOptions['caller'];
  /** For the record of the prefix, which it has not asked for. */
  unjudged: ResolveOptions['caller'];
  /** Runs work on a record of so many characters. */
  run: <T>(steps: Steps<T>, chars: number) => T | Promise<T>;
}

interface NotingListReader extends ListReader {
  /** The records whose values took part. */
  used: readonly FromEntry[];
  /** Characters of them. */
  readonly chars: number;
  /** False when a handle was not read that might be read at another time. */
  readonly isComplete: boolean;
  /** Whether other records were read than those of the prefix and of 0.NA/0.NA. */
  readonly readsOthers: boolean;
}

/** HDLProxy asks for each; a chain of its 21 levels is within it. What memory holds does not count. */
const MAX_ASKED = 25;
/** Of all records together. Real lists have some kilobytes. */
const MAX_CHARS = 4 * 1024 * 1024;

/** The records of other handles, each read once. */
interface RecordReader extends Pick<NotingListReader, 'chars' | 'isComplete'> {
  read: (handle: string) => Promise<FromEntry | undefined>;
}

function createRecordReader(
  { keyOf, otherRecords }: Pick<ListReaderDeps, 'keyOf' | 'otherRecords'>,
  { authoritative, caller }: Pick<ReadingRequest, 'authoritative' | 'caller'>,
): RecordReader {
  const records = new Map<string, Promise<FromEntry | undefined>>();
  let asksLeft = MAX_ASKED;
  let chars = 0;
  let isComplete = true;

  function leaveOut(): FromEntry | undefined {
    isComplete = false;
    return undefined;
  }

  async function find(handle: string): Promise<FromEntry | undefined> {
    let found = authoritative && asksLeft > 0 ? undefined : otherRecords.known(handle);
    if (found === undefined && asksLeft > 0) {
      asksLeft -= 1;
      found = await otherRecords.ask(handle, { authoritative, caller });
    }
    return found === undefined || found.hasFailed ? leaveOut() : found.record;
  }

  async function findWithinBound(handle: string): Promise<FromEntry | undefined> {
    if (chars > MAX_CHARS) return undefined;
    const record = await find(handle);
    chars += record?.entry.values.length ?? 0;
    return chars > MAX_CHARS ? undefined : record;
  }

  return {
    read: (handle) => once(records, keyOf(handle), () => findWithinBound(handle)),
    get chars() {
      return chars;
    },
    get isComplete() {
      return isComplete;
    },
  };
}

const NOTHING: HandleLists = { lists: [], links: [], headers: [] };

/** A handle that does not exist, is refused or cannot be read is left out (recordings "include: absent handle", …). */
export function createListReader(deps: ListReaderDeps, request: ReadingRequest): NotingListReader {
  const { keyOf, parseList, prefixRecords } = deps;
  const { prefix, unjudged, run } = request;
  const records = createRecordReader(deps, request);
  const lists = new Map<string, Promise<HandleLists>>();
  const used: FromEntry[] = [];
  let isPrefixRead = true;
  let readsOthers = false;

  function* listsOf({ entry }: FromEntry): Steps<HandleLists> {
    return yield* listsIn(yield* readValues(entry), parseList);
  }

  async function readLists(handle: string): Promise<HandleLists> {
    readsOthers = true;
    const record = await records.read(handle);
    if (record === undefined) return NOTHING;
    used.push(record);
    return run(listsOf(record), record.entry.values.length);
  }

  /** A prefix record that adds nothing shortens no redirect, but makes it stale. */
  function note(record: FromEntry | undefined, { listHandles }: Namespace): void {
    if (record !== undefined && (listHandles.length > 0 || record.stale !== undefined)) used.push(record);
  }

  return {
    used,
    get chars() {
      return records.chars;
    },
    get isComplete() {
      return records.isComplete && isPrefixRead;
    },
    get readsOthers() {
      return readsOthers;
    },
    readLists: (handle) => once(lists, keyOf(handle), () => readLists(handle)),
    async readNamespace(handle) {
      if (prefixRecords === undefined) return NO_NAMESPACE;
      readsOthers ||= handle !== prefix.handle && handle !== GLOBAL_NAMESPACE;
      const known = handle === prefix.handle ? prefix.record : undefined;
      const { namespace, record, hasFailed } = known ?? (await prefixRecords.read(handle, unjudged));
      isPrefixRead &&= !hasFailed;
      note(record, namespace);
      return namespace;
    },
    async readIncludedNamespace(handle) {
      if (prefixRecords === undefined) return NO_NAMESPACE;
      readsOthers = true;
      const record = await records.read(handle);
      const namespace = namespaceOf(record?.entry);
      note(record, namespace);
      return namespace;
    },
  };
}

function once<T>(made: Map<string, Promise<T>>, key: string, make: () => Promise<T>): Promise<T> {
  const known = made.get(key) ?? make();
  made.set(key, known);
  return known;
}
