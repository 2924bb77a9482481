// Classifies an audited response by the Handle server's record and the writes known to this instance.
import type { Entry } from '../../cache/entry.js';
import type { Outcome } from '../../handle/outcome.js';
import type { SampleResult } from './plugin.js';

export interface AuditedAnswer {
  /** The entry that was served for a hit, or would have been. */
  served: { entry: Entry; at: number };
  /** The record at the Handle server, read after `served.at`; undefined if it could not be read. */
  record: Outcome | undefined;
  writes: KnownWrites;
}

interface KnownWrites {
  /** Whether a write to the handle may be in flight. */
  isInFlight: boolean;
  /** When the last acknowledged write was applied to this instance (ms since the epoch). */
  appliedAt: number | undefined;
  /** Maximum time (ms) by which clock skew may date a load of the new record before `appliedAt`. */
  marginMs: number;
}

export type AuditResult = Exclude<SampleResult, 'skipped'>;

/**
 * Returns `older-after-acknowledged-write` only for an entry that was loaded before a write and served after
 * it. Any other conclusive difference is attributed to a write that bypassed the proxy.
 */
export function classify({ served: { entry, at }, record, writes }: AuditedAnswer): AuditResult {
  if (record === undefined || record.kind === 'refused') return 'inconclusive';
  if (isSameRecord(entry, record)) return 'equal';
  const { isInFlight, appliedAt = -Infinity, marginMs } = writes;
  // The entry may have been current when it was served.
  if (isInFlight || appliedAt >= at) return 'inconclusive';
  if (entry.requestedAt >= appliedAt) return 'older-within-ttl';
  return entry.requestedAt < appliedAt - marginMs ? 'older-after-acknowledged-write' : 'inconclusive';
}

/** Whether both have the same public values. Messages of not-found outcomes are ignored. */
export const isSameRecord = (entry: Entry, record: Outcome): boolean =>
  entry.kind === record.kind && (record.kind !== 'found' || entry.values === record.values);
