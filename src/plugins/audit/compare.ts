// Compares a cache entry with the record at the Handle server.
import type { Cache } from '../../cache/cache.js';
import type { Context } from '../../context.js';
import type { HandleRef } from '../../handle/handle.js';
import type { Outcome } from '../../handle/outcome.js';
import { exceptServiceError } from '../../resolver/loader.js';
import { OWN_WORK } from '../../upstream/caller.js';
import type { UpstreamClient } from '../../upstream/contract.js';
import { type AuditResult, type AuditedAnswer, classify, isSameRecord } from './classify.js';

interface CompareDeps {
  cache: Pick<Cache, 'memory' | 'redisState'>;
  reads: Pick<UpstreamClient, 'resolve'>;
  clock: Pick<Context['clock'], 'after'>;
  /** Returns when the last acknowledged write to a key was applied to this instance. */
  appliedAt: (key: string) => number | undefined;
}

export type Compare = (handle: HandleRef, served: AuditedAnswer['served']) => Promise<AuditResult>;

/** Time for messages about a write in flight to arrive from other instances. */
const SETTLE_MS = 1000;
/** Maximum clock skew between instances, including message delay. */
const MARGIN_MS = 250;

/** Creates the comparison. The record is not stored, because an audit must not extend the entry's TTL. */
export function createCompare({ cache, reads, clock, appliedAt }: CompareDeps): Compare {
  const isShared = cache.redisState() !== 'disabled';
  const read = async (handle: HandleRef): Promise<Outcome | undefined> => {
    try {
      return await reads.resolve({ handle, authoritative: true, caller: OWN_WORK });
    } catch (failure) {
      exceptServiceError(failure);
      return undefined;
    }
  };
  const settle = (): Promise<void> =>
    new Promise((resolve) => {
      clock.after(SETTLE_MS, resolve);
    });
  /** Whether a fence is raised, or a fence message may have been missed. */
  const isInFlight = (key: string): boolean =>
    cache.redisState() === 'down' || !cache.memory.accepts(key, cache.memory.moment());

  return async function compare(handle, served) {
    const { key } = handle;
    const record = await read(handle);
    if (isShared && record !== undefined && !isSameRecord(served.entry, record)) await settle();
    const marginMs = isShared ? MARGIN_MS : 0;
    const writes = { isInFlight: isInFlight(key), appliedAt: appliedAt(key), marginMs };
    return classify({ served, record, writes });
  };
}
