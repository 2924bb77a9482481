// Reads the records that a redirect depends on beside its own, and remembers for a short time the answers that no cache keeps.
import { LRUCache } from 'lru-cache';
import type { Entry } from '../../cache/entry.js';
import { isFresh, isNearEnd } from '../../cache/policy.js';
import type { Beside } from '../../cache/prepared-cache.js';
import type { PinnedEntries } from '../../cache/store.js';
import type { Config } from '../../config/schema.js';
import type { Context } from '../../context.js';
import { ServiceError } from '../../errors.js';
import type { FromEntry } from '../../resolver/resolution.js';
import type { ResolveOptions, Resolver } from '../../resolver/resolver.js';

interface OtherRecordsParts {
  resolver: Pick<Resolver<unknown>, 'resolve' | 'fromMemory' | 'keyOf'>;
  /** Whether an answer from this moment on may still be used: as for a load that began then. */
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
  /** Without a question to the server; undefined when it has to be asked. */
  known: (handle: string) => OtherRecord | undefined;
  ask: (handle: string, options: ResolveOptions) => Promise<OtherRecord>;
  /** As `known`, but a refusal or failure that is due counts once more, while the server is asked again. */
  knownOrDue: (handle: string, options: ResolveOptions) => OtherRecord | undefined;
  /** Whether `known` would give the same now; undefined when memory no longer holds the record. */
  watch: (handle: string, known: OtherRecord) => Beside | undefined;
}

/** An answer that no cache keeps: a refusal, a failure, or a record whose TTL is 0. */
interface Remembered extends OtherRecord {
  askedAt: number;
  moment: number;
  /** Then it is asked for again (ms). */
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
 * A redirect may include two hundred handles that the server refuses or whose TTL is 0: without a memory each request
 * would be two hundred questions. An invalidation of a handle ends its memory, as it does for an entry.
 */
function createRememberedAnswers({ memory, trustedSince }: OtherRecordsParts): RememberedAnswers {
  const answers = new LRUCache<string, Remembered>({
    maxSize: MAX_REMEMBERED_BYTES,
    sizeCalculation: ({ record }, key) => 200 + key.length + (record?.entry.values.length ?? 0),
    // Prepared redirects that depend on it find that it is due.
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

  function known(handle: string): OtherRecord | undefined {
    const record = resolver.fromMemory(handle);
    if (record !== undefined) return { record, hasFailed: false };
    const found = answers.last(resolver.keyOf(handle));
    return found !== undefined && now() < found.dueAt ? found : undefined;
  }

  async function ask(handle: string, options: ResolveOptions): Promise<OtherRecord> {
    const key = resolver.keyOf(handle);
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
      const last = answers.last(resolver.keyOf(handle));
      if (last === undefined || last.record !== undefined) return undefined;
      last.dueAt = now() + retryAfterMs;
      void ask(handle, options);
      return last;
    },
    watch(handle, found) {
      const key = resolver.keyOf(handle);
      const last = answers.last(key);
      if (last === found) return { isCurrent: (at) => at < last.dueAt && answers.isValid(key, last) };
      const { entry } = found.record ?? {};
      return entry && watchEntry(key, entry, parts);
    },
  };
}

const isStored = (record: FromEntry | undefined): boolean =>
  record !== undefined && !(record.from === 'upstream' && record.stored === false);

const isRefusal = ({ record, hasFailed }: OtherRecord): boolean => record === undefined && !hasFailed;

/** A failure that any client would meet; others have used up what one client may ask for. */
const isOfServer = (failure: unknown): boolean =>
  failure instanceof ServiceError && failure.code.startsWith('UPSTREAM_');

function watchEntry(
  key: string,
  entry: Entry,
  { memory, trustedSince }: Pick<OtherRecordsParts, 'memory' | 'trustedSince'>,
): Beside | undefined {
  const pin = memory.pin(key, entry);
  if (pin === undefined) return undefined;
  const watched = { ...pin, requestedAt: entry.requestedAt, staleAt: entry.staleAt };
  let isRefreshOffered = false;
  return {
    isCurrent(now) {
      if (!memory.touchIfCurrent(key, watched) || !isFresh(watched, now, trustedSince())) return false;
      if (!isNearEnd(watched, now) || isRefreshOffered) return true;
      // Once the resolver sees a read near the end of the TTL, and may refresh the entry ahead.
      isRefreshOffered = true;
      return false;
    },
  };
}
