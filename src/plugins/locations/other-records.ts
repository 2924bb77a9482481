// Reads the prefix and included records of a redirect, and briefly remembers uncacheable results.
import { LRUCache } from 'lru-cache';
import { boundedMap } from '../../cache/bounded-map.js';
import type { Host } from '../../host.js';
import type { Cache } from '../../cache/cache.js';
import type { Entry } from '../../cache/entry.js';
import { type Dependency, isCurrent, watchEntry } from '../../cache/prepared-cache.js';
import type { Config } from '../../config/schema.js';
import { ServiceError } from '../../errors.js';
import {
  GLOBAL_NAMESPACE,
  GLOBAL_PREFIX,
  type HandleRef,
  MAX_HANDLE_BYTES,
  handleRef,
  prefixRecordOf,
} from '../../handle/handle.js';
import type { HandleValue } from '../../handle/value.js';
import { valuesOf } from '../../resolver/parsed-records.js';
import type { FromEntry } from '../../resolver/resolution.js';
import type { Caller } from '../../upstream/caller.js';
import type { ResolveOptions } from '../../upstream/contract.js';
import { runToEnd } from '../../time-slicer.js';
import { textOf, valuesOfType } from '../../redirect/values.js';
import { type HandleLists, isYes, scanDocument } from './location-list.js';

interface OtherRecord {
  /** Undefined when the server refuses the record or fails. */
  record: FromEntry | undefined;
  hasFailed: boolean;
}

export type OtherRecords = ReturnType<typeof createOtherRecords>;

/** An uncacheable result: a refusal, a failure, or a record with TTL 0. */
interface Remembered extends OtherRecord {
  askedAt: number;
  moment: number;
  /** Time (ms) of the next upstream request. */
  dueAt: number;
}

const MAX_REMEMBERED_BYTES = 8 * 1024 * 1024;

/** Avoids an upstream read of each refused or TTL-0 include on every redirect, until it is invalidated. */
function createRememberedAnswers({ memory, trustedSince }: Cache) {
  const answers = new LRUCache<string, Remembered>({
    maxSize: MAX_REMEMBERED_BYTES,
    sizeCalculation: ({ record }, key) => 200 + key.length + (record?.entry.values.length ?? 0),
    // Expires prepared redirects that depend on the replaced result.
    dispose: (answer, _key, reason) => {
      if (reason !== 'evict') answer.dueAt = 0;
    },
  });
  const isValid = (key: string, { askedAt, moment }: Remembered): boolean =>
    askedAt >= trustedSince() && memory.isCurrent(key, moment);
  /** Returns undefined for a result that may have missed an invalidation. */
  function last(key: string): Remembered | undefined {
    const found = answers.get(key);
    return found !== undefined && isValid(key, found) ? found : undefined;
  }
  return { answers, isValid, last };
}

export function createOtherRecords(
  { upstream: { retryAfterMs } }: Config,
  { clock: { now }, resolver, cache }: Host,
) {
  const { memory } = cache;
  const { answers, isValid, last: lastAnswer } = createRememberedAnswers(cache);

  /** Returns a record without an upstream request; undefined if this is impossible. */
  function known(handle: HandleRef): OtherRecord | undefined {
    const record = resolver.fromMemory(handle);
    if (record !== undefined) return { record, hasFailed: false };
    const found = lastAnswer(handle.key);
    return found !== undefined && now() < found.dueAt ? found : undefined;
  }

  async function ask(handle: HandleRef, options: ResolveOptions): Promise<OtherRecord> {
    const { key } = handle;
    const [askedAt, moment] = [now(), memory.moment()];
    const remember = (answer: OtherRecord): OtherRecord => {
      answers.set(key, { ...answer, askedAt, moment, dueAt: askedAt + retryAfterMs });
      return answer;
    };
    try {
      const resolution = await resolver.resolve(handle, options);
      const record = resolution.kind === 'entry' ? resolution : undefined;
      const answer = { record, hasFailed: false };
      if (!isStored(record)) return remember(answer);
      answers.delete(key);
      return answer;
    } catch (failure) {
      const answer = { record: undefined, hasFailed: true };
      if (!isOfServer(failure)) return answer;
      const last = lastAnswer(key);
      if (last === undefined || !isRefusal(last)) return remember(answer);
      // A failure does not replace a refusal; only a successful read does.
      last.dueAt = askedAt + retryAfterMs;
      return last;
    }
  }

  return {
    known,
    ask,
    /** Like `known`, but returns an expired refusal or failure once more while it is read again. */
    knownOrDue(handle: HandleRef, options: ResolveOptions): OtherRecord | undefined {
      const found = known(handle);
      if (found !== undefined) return found;
      const last = lastAnswer(handle.key);
      if (last === undefined || last.record !== undefined) return undefined;
      last.dueAt = now() + retryAfterMs;
      void ask(handle, options);
      return last;
    },
    /** Tracks whether `known` is still current; returns undefined if memory has dropped the record. */
    watch({ key }: HandleRef, found: OtherRecord): Dependency | undefined {
      const last = lastAnswer(key);
      if (last === found) return { isCurrent: (at) => at < last.dueAt && isValid(key, last) };
      const { entry } = found.record ?? {};
      const watched = entry && watchEntry(key, entry, cache);
      return watched && { isCurrent: (at) => isCurrent(watched, at, cache) };
    },
  };
}

const isStored = (record: FromEntry | undefined): boolean =>
  record !== undefined && !(record.from === 'upstream' && record.stored === false);

const isRefusal = ({ record, hasFailed }: OtherRecord): boolean => record === undefined && !hasFailed;

/** Whether the failure affects every client; other failures result from the limits of a single client. */
const isOfServer = (failure: unknown): boolean =>
  failure instanceof ServiceError && failure.code.startsWith('UPSTREAM_');

export interface Namespace {
  /** Handles whose lists apply to every redirect of the prefix. */
  listHandles: readonly string[];
  /** The list of `redirect.locationsFile`, which replaces those of `listHandles`. */
  listOfFile?: HandleLists | undefined;
  /** False if the prefix excludes the lists of the global namespace, 0.NA/0.NA. */
  usesGlobal: boolean;
  isInactive: boolean;
  /** The operator's reason for inactivity; empty if none is given. */
  statusMessage: string;
  /** The operator's contact; empty if none is given. */
  contact: string;
}

export const NO_NAMESPACE: Namespace = {
  listHandles: [],
  usesGlobal: true,
  isInactive: false,
  statusMessage: '',
  contact: '',
};

/**
 * Longer values count as broken, because each redirect of the prefix parses its value. Real values have under
 * 1,000 characters.
 */
const MAX_CHARS = 16 * 1024;
/** Equals the maximum number of included handles. */
const MAX_LIST_HANDLES = 200;

const MAX_SHOWN_CHARS = 500;

/** Parses the first HS_NAMESPACE, even if broken; HDLProxy responds with 500 to an empty one. */
export function namespaceIn(values: readonly HandleValue[]): Namespace {
  const [first] = valuesOfType(values, 'HS_NAMESPACE').sort((one, other) => one.index - other.index);
  const text = (first && textOf(first)) ?? '';
  const children = (text.length <= MAX_CHARS && runToEnd(scanDocument(text))?.children) || [];
  const locs = children.filter(({ name }) => name === 'locs');
  const shown = (wanted: string): string =>
    (children.find(({ name }) => name === wanted)?.text ?? '').trim().slice(0, MAX_SHOWN_CHARS);
  return {
    listHandles: locs
      .map((each) => each.text.trim())
      .filter((handle) => handle !== '' && handle.length <= MAX_HANDLE_BYTES)
      .slice(0, MAX_LIST_HANDLES),
    usesGlobal: !locs.some(({ attributes }) => isYes(attributes.get('no_nslocs'))),
    isInactive: children.some((each) => each.name === 'status' && each.text === 'inactive'),
    statusMessage: shown('statusmsg'),
    contact: shown('contact'),
  };
}

/** Adds the `0.NA/` that may be missing (recording "include: includeNamespace without 0.NA/"). */
export const toPrefixHandle = (name: string): HandleRef =>
  handleRef(/^0\.NA\//i.test(name) ? name : `${GLOBAL_PREFIX}/${name}`, false);

export interface PrefixRecord extends OtherRecord {
  namespace: Namespace;
}

export type PrefixRecords = ReturnType<typeof createPrefixRecords>;

/** Maximum cached dependencies. All prepared redirects of a prefix share one. */
const MAX_PREFIXES = 10_000;

/** `listsOfFile`: by the key of the prefix record. */
export function createPrefixRecords(records: OtherRecords, listsOfFile: ReadonlyMap<string, HandleLists>) {
  const plainPrefixes = boundedMap<Dependency>(MAX_PREFIXES);

  function watchPlain(prefixHandle: HandleRef): Dependency | undefined {
    const known = records.known(prefixHandle);
    if (listsOfFile.has(prefixHandle.key)) return undefined;
    return known !== undefined && isPlainRecord(known) ? records.watch(prefixHandle, known) : undefined;
  }

  /**
   * Creates a dependency on a prefix without influence. It becomes current again when both records have been
   * reloaded: a missing record expires after `cache.notFound.ttl`, and the redirects prepared meanwhile remain valid.
   */
  function createPlainPrefix(prefixHandle: HandleRef): Dependency {
    let own: Dependency | undefined;
    let global: Dependency | undefined;
    return {
      isCurrent(at) {
        if (own?.isCurrent(at) !== true) own = watchPlain(prefixHandle);
        if (own === undefined) return false;
        if (global?.isCurrent(at) !== true) global = watchPlain(GLOBAL_NAMESPACE);
        return global !== undefined;
      },
    };
  }

  return {
    /** Reads a prefix record, for example 0.NA/21.T11998. `caller` must be exempt from miss accounting. */
    async read(prefixHandle: HandleRef, caller: Caller | undefined): Promise<PrefixRecord> {
      const options = { authoritative: false, caller };
      const found = records.knownOrDue(prefixHandle, options) ?? (await records.ask(prefixHandle, options));
      const namespace = namespaceOf(found.record?.entry);
      const listOfFile = listsOfFile.get(prefixHandle.key);
      if (listOfFile === undefined) return { ...found, namespace };
      return { ...found, namespace: { ...namespace, listHandles: [], listOfFile } };
    },
    /** Returns a dependency for prepared redirects, unless a prefix record affects them or is unknown. */
    plainPrefixOf: (handle: HandleRef, now: number): Dependency | undefined => {
      const prefixHandle = prefixRecordOf(handle);
      const dependency = plainPrefixes.get(prefixHandle.key) ?? createPlainPrefix(prefixHandle);
      if (!dependency.isCurrent(now)) return undefined;
      plainPrefixes.set(prefixHandle.key, dependency);
      return dependency;
    },
  };
}

/** Returns false for an unreadable record, because the prefix may be inactive or have locations. */
function isPlainRecord({ record, hasFailed }: OtherRecord): boolean {
  const { isInactive, listHandles } = namespaceOf(record?.entry);
  return !hasFailed && !isInactive && listHandles.length === 0;
}

/** Longer prefix records count as plain, because every redirect of the prefix searches and parses its record in one step. */
const MAX_RECORD_CHARS = 128 * 1024;

/** Parses only records with HS_NAMESPACE, because most prefix records contain only keys and sites. */
export const namespaceOf = (entry: Entry | undefined): Namespace =>
  entry !== undefined && entry.values.length <= MAX_RECORD_CHARS && /HS_NAMESPACE/i.test(entry.values)
    ? namespaceIn(valuesOf(entry))
    : NO_NAMESPACE;
