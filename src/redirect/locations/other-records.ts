// Reads the other records that a redirect depends on, such as prefix records, and remembers for a short time the answers that
// no cache keeps.
import { LRUCache } from 'lru-cache';
import type { Entry } from '../../cache/entry.js';
import { type Dependency, isCurrent, watchEntry } from '../../cache/prepared-cache.js';
import type { PinnedEntries } from '../../cache/store.js';
import type { Config } from '../../config/schema.js';
import type { Context } from '../../context.js';
import { ServiceError } from '../../errors.js';
import {
  GLOBAL_PREFIX,
  type HandleRef,
  MAX_HANDLE_BYTES,
  handleRef,
  prefixRecordOf,
} from '../../handle/handle.js';
import type { HandleValue } from '../../handle/value.js';
import { valuesOf } from '../../resolver/parsed-records.js';
import type { FromEntry } from '../../resolver/resolution.js';
import type { ResolveOptions, Resolver } from '../../resolver/resolver.js';
import { runToEnd } from '../../time-slicer.js';
import { isOfType, textOf } from '../values.js';
import { isYes } from './location-list.js';
import { scanDocument } from './scan.js';

interface OtherRecordsParts {
  resolver: Pick<Resolver<unknown>, 'resolve' | 'fromMemory'>;
  /** Validates an answer by the moment of its request, as for a load that began then. */
  memory: PinnedEntries & { moment: () => number; isCurrent: (key: string, moment: number) => boolean };
  /** Answers from before this moment (ms) may have missed an invalidation. */
  trustedSince: () => number;
}

export interface OtherRecord {
  /** Undefined when the server refuses to give the record, or fails. */
  record: FromEntry | undefined;
  hasFailed: boolean;
}

export interface OtherRecords {
  /** Reads without an upstream request; undefined when one is needed. */
  known: (handle: HandleRef) => OtherRecord | undefined;
  ask: (handle: HandleRef, options: ResolveOptions) => Promise<OtherRecord>;
  /** As `known`, but a refusal or failure that is due is used once more while it is requested again. */
  knownOrDue: (handle: HandleRef, options: ResolveOptions) => OtherRecord | undefined;
  /** Tracks whether `known` would still return the same; undefined when memory no longer holds the record. */
  watch: (handle: HandleRef, known: OtherRecord) => Dependency | undefined;
}

/** An answer that no cache keeps: a refusal, a failure, or a record whose TTL is 0. */
interface Remembered extends OtherRecord {
  askedAt: number;
  moment: number;
  /** Time (ms) from which it is requested again. */
  dueAt: number;
}

const MAX_REMEMBERED_BYTES = 8 * 1024 * 1024;

interface RememberedAnswers {
  /** Undefined when it may have missed an invalidation. */
  last: (key: string) => Remembered | undefined;
  isValid: (key: string, answer: Remembered) => boolean;
  set: (key: string, answer: Remembered) => void;
  delete: (key: string) => void;
}

/**
 * A redirect may include many handles that the server refuses or whose TTL is 0: without this memory each request would
 * read them again. An invalidation of a handle drops its answer, like an entry.
 */
function createRememberedAnswers({ memory, trustedSince }: OtherRecordsParts): RememberedAnswers {
  const answers = new LRUCache<string, Remembered>({
    maxSize: MAX_REMEMBERED_BYTES,
    sizeCalculation: ({ record }, key) => 200 + key.length + (record?.entry.values.length ?? 0),
    // Prepared redirects that depend on the answer find that it is due.
    dispose: (answer, _key, reason) => {
      if (reason !== 'evict') answer.dueAt = 0;
    },
  });
  const isValid = (key: string, { askedAt, moment }: Remembered): boolean =>
    askedAt >= trustedSince() && memory.isCurrent(key, moment);
  return {
    last(key) {
      const found = answers.get(key);
      return found !== undefined && isValid(key, found) ? found : undefined;
    },
    isValid,
    set: (key, answer) => answers.set(key, answer),
    delete: (key) => answers.delete(key),
  };
}

export function createOtherRecords(
  { upstream: { retryAfterMs } }: { upstream: Pick<Config['upstream'], 'retryAfterMs'> },
  { clock: { now } }: Context,
  parts: OtherRecordsParts,
): OtherRecords {
  const { resolver, memory } = parts;
  const answers = createRememberedAnswers(parts);

  function known(handle: HandleRef): OtherRecord | undefined {
    const record = resolver.fromMemory(handle);
    if (record !== undefined) return { record, hasFailed: false };
    const found = answers.last(handle.key);
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
      const last = answers.last(key);
      if (last === undefined || !isRefusal(last)) return remember(answer);
      // A refusal counts until the server gives another answer.
      last.dueAt = askedAt + retryAfterMs;
      return last;
    }
  }

  return {
    known,
    ask,
    knownOrDue(handle, options) {
      const found = known(handle);
      if (found !== undefined) return found;
      const last = answers.last(handle.key);
      if (last === undefined || last.record !== undefined) return undefined;
      last.dueAt = now() + retryAfterMs;
      void ask(handle, options);
      return last;
    },
    watch({ key }, found) {
      const last = answers.last(key);
      if (last === found) return { isCurrent: (at) => at < last.dueAt && answers.isValid(key, last) };
      const { entry } = found.record ?? {};
      const watched = entry && watchEntry(key, entry, parts);
      return watched && { isCurrent: (at) => isCurrent(watched, at, parts) };
    },
  };
}

const isStored = (record: FromEntry | undefined): boolean =>
  record !== undefined && !(record.from === 'upstream' && record.stored === false);

const isRefusal = ({ record, hasFailed }: OtherRecord): boolean => record === undefined && !hasFailed;

/** A failure that any client would get; other failures are limits of one client. */
const isOfServer = (failure: unknown): boolean =>
  failure instanceof ServiceError && failure.code.startsWith('UPSTREAM_');

export interface Namespace {
  /** Handles whose lists take part in every redirect of the prefix. */
  listHandles: readonly string[];
  /** False when the prefix excludes the lists of the global namespace, 0.NA/0.NA. */
  usesGlobal: boolean;
  isInactive: boolean;
  /** Why it is inactive, in the words of its operator; empty for none. */
  statusMessage: string;
  /** Contact for handles of the prefix; empty for none. */
  contact: string;
}

export const NO_NAMESPACE: Namespace = {
  listHandles: [],
  usesGlobal: true,
  isInactive: false,
  statusMessage: '',
  contact: '',
};

/** A longer value counts as broken: it is parsed for each redirect of its prefix. Real values have less than 1,000 characters. */
const MAX_CHARS = 64 * 1024;
/** Equals the maximum of included handles. */
const MAX_LIST_HANDLES = 200;

/** Maximum for a text on a page. */
const MAX_SHOWN_CHARS = 500;

/** The value with the lowest index counts, even if it is broken or empty; HDLProxy responds with 500 to an empty value. */
export function namespaceIn(values: readonly HandleValue[]): Namespace {
  const [first] = values
    .filter((value) => isOfType(value, 'HS_NAMESPACE'))
    .sort((one, other) => one.index - other.index);
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

/**
 * `includeNamespace` and `overridePrefix` may leave out `0.NA/` (recording "include: includeNamespace without 0.NA/"). Letter
 * case never matters in these handles.
 */
export const toPrefixHandle = (name: string): HandleRef =>
  handleRef(/^0\.NA\//i.test(name) ? name : `${GLOBAL_PREFIX}/${name}`, false);

export const GLOBAL_NAMESPACE = toPrefixHandle(GLOBAL_PREFIX);

export interface PrefixRecord extends OtherRecord {
  namespace: Namespace;
}

export interface PrefixRecords {
  /** Reads a prefix record such as 0.NA/21.T11998. `caller`: a caller whose misses are not counted. */
  read: (prefixHandle: HandleRef, caller: ResolveOptions['caller']) => Promise<PrefixRecord>;
  /** The dependency of a prepared redirect; undefined unless the records of the prefix and of 0.NA/0.NA add nothing to redirects. */
  plainPrefixOf: (handle: HandleRef, now: number) => Dependency | undefined;
}

/** Maximum number of prefixes with a cached dependency; all prepared redirects of a prefix share it. */
const MAX_PREFIXES = 10_000;

export function createPrefixRecords(
  records: Pick<OtherRecords, 'known' | 'knownOrDue' | 'ask' | 'watch'>,
): PrefixRecords {
  const plainPrefixes = new LRUCache<string, Dependency>({
    // `max` would preallocate for all prefixes.
    maxSize: MAX_PREFIXES,
    sizeCalculation: () => 1,
  });

  function watchPlain(prefixHandle: HandleRef): Dependency | undefined {
    const known = records.known(prefixHandle);
    return known !== undefined && isPlain(known) ? records.watch(prefixHandle, known) : undefined;
  }

  return {
    async read(prefixHandle, caller) {
      const options = { authoritative: false, caller };
      const found = records.knownOrDue(prefixHandle, options) ?? (await records.ask(prefixHandle, options));
      return { ...found, namespace: namespaceOf(found.record?.entry) };
    },
    plainPrefixOf(handle, now) {
      const prefixHandle = prefixRecordOf(handle);
      const shared = plainPrefixes.get(prefixHandle.key);
      if (shared?.isCurrent(now) === true) return shared;
      const [own, global] = [watchPlain(prefixHandle), watchPlain(GLOBAL_NAMESPACE)];
      if (own === undefined || global === undefined) return undefined;
      const made = { isCurrent: (at: number) => own.isCurrent(at) && global.isCurrent(at) };
      plainPrefixes.set(prefixHandle.key, made);
      return made;
    },
  };
}

/** A prefix whose record cannot be read may be inactive, or have locations. */
function isPlain({ record, hasFailed }: OtherRecord): boolean {
  const { isInactive, listHandles } = namespaceOf(record?.entry);
  return !hasFailed && !isInactive && listHandles.length === 0;
}

/** Most prefix records have no HS_NAMESPACE; then their keys and sites are not parsed. */
export const namespaceOf = (entry: Entry | undefined): Namespace =>
  entry !== undefined && /HS_NAMESPACE/i.test(entry.values) ? namespaceIn(valuesOf(entry)) : NO_NAMESPACE;
