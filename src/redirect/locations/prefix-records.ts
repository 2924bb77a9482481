// Reads prefix records, and knows which redirects depend on nothing in them.
import { LRUCache } from 'lru-cache';
import type { Entry, Times } from '../../cache/entry.js';
import { isFresh } from '../../cache/policy.js';
import type { EntryPin, PinnedEntries } from '../../cache/store.js';
import type { FromEntry, Resolution } from '../../resolver/resolution.js';
import type { ResolveOptions } from '../../resolver/resolver.js';
import { valuesOf } from '../../resolver/parsed-records.js';
import { GLOBAL_NAMESPACE, NO_NAMESPACE, type Namespace, namespaceIn, prefixHandleOf } from './namespace.js';

export interface PrefixRecordsDeps {
  resolve: (handle: string, options: ResolveOptions) => Promise<Resolution>;
  keyOf: (handle: string) => string;
  memory: PinnedEntries & { peek: (key: string) => Entry | undefined };
  /** Entries from before this moment (ms) may have missed an invalidation. */
  trustedSince: () => number;
  now: () => number;
}

type ReadCaller = ResolveOptions['caller'];

export interface PrefixRecord {
  namespace: Namespace;
  /** Undefined when the server refused it, or failed. */
  resolution: FromEntry | undefined;
}

/** For prepared responses: whether the prefix still adds nothing to a redirect. */
export interface PlainPrefix {
  isCurrent: (now: number) => boolean;
}

export interface PrefixRecords {
  /** Of a prefix handle such as 0.NA/21.T11998. `caller`: one that is not judged by its misses. */
  read: (prefixHandle: string, caller: ReadCaller) => Promise<PrefixRecord>;
  /** After `read`: undefined unless the records of the prefix and of 0.NA/0.NA add nothing to redirects. */
  plainPrefixOf: (handle: string) => PlainPrefix | undefined;
}

/** A prefix record that the server refused to give, or that could not be read, is asked for again after this time. */
const REFUSED_MS = 30_000;
/** An entry that expired within this time is used while it is read again (RFC 5861 stale-while-revalidate). */
const REVALIDATE_MS = 60_000;
const MAX_PREFIXES = 10_000;

/** A record of a prefix that adds nothing: an entry in memory, or a refusal. */
type PlainRecord = ({ key: string } & EntryPin & Times) | { until: number };

const REFUSED: PrefixRecord = { namespace: NO_NAMESPACE, resolution: undefined };

export function createPrefixRecords(deps: PrefixRecordsDeps): PrefixRecords {
  /** Without those that add something, or cannot be watched. */
  const plain = new LRUCache<string, PlainRecord>({ max: MAX_PREFIXES });
  const plainPrefixes = new LRUCache<string, PlainPrefix>({ max: MAX_PREFIXES });

  async function load(prefixHandle: string, key: string, caller: ReadCaller): Promise<PrefixRecord> {
    const resolution = await deps
      .resolve(prefixHandle, { authoritative: false, caller })
      .catch((): undefined => undefined);
    if (resolution?.kind !== 'entry') {
      plain.set(key, { until: deps.now() + REFUSED_MS });
      return REFUSED;
    }
    const record = { namespace: namespaceOf(resolution.entry), resolution };
    plain.set(key, plainRecord(record, key, deps));
    return record;
  }

  /** Nobody waits for a prefix that was known a moment ago. */
  function fromMemory(prefixHandle: string, key: string, caller: ReadCaller): PrefixRecord | undefined {
    const entry = deps.memory.peek(key);
    if (entry !== undefined && entry.staleAt > 0 && entry.requestedAt >= deps.trustedSince()) {
      const expiredMs = deps.now() - entry.staleAt;
      if (expiredMs < 0 || expiredMs > REVALIDATE_MS) return undefined;
      void load(prefixHandle, key, caller);
      const resolution: FromEntry = { kind: 'entry', entry, from: 'memory', collapsed: false };
      return { namespace: namespaceOf(entry), resolution };
    }
    const refused = plain.get(key);
    if (refused === undefined || !('until' in refused)) return undefined;
    if (refused.until <= deps.now()) {
      refused.until = deps.now() + REFUSED_MS;
      void load(prefixHandle, key, caller);
    }
    return REFUSED;
  }

  return {
    async read(prefixHandle, caller) {
      const key = deps.keyOf(prefixHandle);
      return fromMemory(prefixHandle, key, caller) ?? load(prefixHandle, key, caller);
    },
    plainPrefixOf(handle) {
      const keys = [prefixHandleOf(handle), GLOBAL_NAMESPACE].map(deps.keyOf);
      const [prefixKey = ''] = keys;
      const areKnownPlain = keys.every((key) => plain.get(key) !== undefined);
      if (!areKnownPlain) {
        plainPrefixes.delete(prefixKey);
        return undefined;
      }
      const found = plainPrefixes.get(prefixKey) ?? {
        isCurrent: (now: number) => keys.every((key) => isCurrentRecord(plain.get(key), now, deps)),
      };
      plainPrefixes.set(prefixKey, found);
      return found;
    },
  };
}

function plainRecord(
  { namespace, resolution }: PrefixRecord,
  key: string,
  { memory }: PrefixRecordsDeps,
): PlainRecord | undefined {
  if (resolution === undefined || namespace.isInactive || namespace.listHandles.length > 0) return undefined;
  const { entry } = resolution;
  const pin = memory.pin(key, entry);
  return pin && { key, ...pin, requestedAt: entry.requestedAt, staleAt: entry.staleAt };
}

function isCurrentRecord(
  record: PlainRecord | undefined,
  now: number,
  { memory, trustedSince }: PrefixRecordsDeps,
): boolean {
  if (record === undefined) return false;
  if ('until' in record) return now < record.until;
  return memory.touchIfCurrent(record.key, record) && isFresh(record, now, trustedSince());
}

/** Most prefix records have no HS_NAMESPACE, and keys and sites that need not be parsed. */
export const namespaceOf = (entry: Entry): Namespace =>
  /HS_NAMESPACE/i.test(entry.values) ? namespaceIn(valuesOf(entry)) : NO_NAMESPACE;
