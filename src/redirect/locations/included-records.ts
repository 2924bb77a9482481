// Reads the records that lists include, and remembers for a short time those that no cache keeps.
import { LRUCache } from 'lru-cache';
import type { FromEntry, Resolution } from '../../resolver/resolution.js';
import type { ResolveOptions } from '../../resolver/resolver.js';

export interface IncludedRecordsDeps {
  resolve: (handle: string, options: ResolveOptions) => Promise<Resolution>;
  /** A fresh entry in memory. */
  fromMemory: (handle: string) => FromEntry | undefined;
  keyOf: (handle: string) => string;
  /** Whether an answer from this moment on may still be used: as for a load that began then. */
  memory: { moment: () => number; isCurrent: (key: string, moment: number) => boolean };
  /** Answers from before this moment (ms) may have missed an invalidation. */
  trustedSince: () => number;
  /** `upstream.retryAfter`. */
  retryAfterMs: number;
  now: () => number;
}

/** Undefined when the server refuses to give the record. */
type IncludedRecord = FromEntry | undefined;

export interface IncludedRecords {
  /** Without a question to the server; undefined when it has to be asked. */
  known: (handle: string) => { record: IncludedRecord } | undefined;
  /** @throws ServiceError when the server fails, or the caller's network is limited */
  ask: (handle: string, options: ResolveOptions) => Promise<IncludedRecord>;
}

/** An answer that no cache keeps: a refusal, or a record whose TTL is 0. */
interface Remembered {
  record: IncludedRecord;
  askedAt: number;
  moment: number;
}

const MAX_REMEMBERED_BYTES = 8 * 1024 * 1024;

/**
 * A redirect may include two hundred handles that the server refuses or whose TTL is 0: without a memory each request
 * would be two hundred questions. An invalidation of a handle ends its memory, as it does for an entry.
 */
export function createIncludedRecords(deps: IncludedRecordsDeps): IncludedRecords {
  const { resolve, fromMemory, keyOf, memory, trustedSince, retryAfterMs, now } = deps;
  const remembered = new LRUCache<string, Remembered>({
    maxSize: MAX_REMEMBERED_BYTES,
    sizeCalculation: ({ record }, key) => 200 + key.length + (record?.entry.values.length ?? 0),
  });
  const isCurrent = (key: string, { askedAt, moment }: Remembered): boolean =>
    now() < askedAt + retryAfterMs && askedAt >= trustedSince() && memory.isCurrent(key, moment);

  return {
    known(handle) {
      const record = fromMemory(handle);
      if (record !== undefined) return { record };
      const key = keyOf(handle);
      const found = remembered.get(key);
      return found !== undefined && isCurrent(key, found) ? found : undefined;
    },
    async ask(handle, options) {
      const [askedAt, moment] = [now(), memory.moment()];
      const resolution = await resolve(handle, options);
      const record = resolution.kind === 'entry' ? resolution : undefined;
      const isKept = record !== undefined && !(record.from === 'upstream' && record.stored === false);
      if (!isKept) remembered.set(keyOf(handle), { record, askedAt, moment });
      return record;
    },
  };
}
