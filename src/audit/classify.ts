// Classifies an audited answer by the Handle server's record and the writes that this instance knows.
import type { Entry } from '../cache/entry.js';
import type { Outcome } from '../handle/outcome.js';
import type { LabelValue } from '../observe/metric-list.js';

export interface AuditedAnswer {
  /** The entry that answered a hit, or would have answered one. */
  served: { entry: Pick<Entry, 'kind' | 'values' | 'requestedAt'>; at: number };
  /** The record at the Handle server, read after `served.at`; undefined if it could not be read. */
  record: Outcome | undefined;
  writes: KnownWrites;
}

export interface KnownWrites {
  /** Whether a write of the handle may be in flight. */
  isInFlight: boolean;
  /** Time at which the last acknowledged write was applied to this instance (ms since the epoch). */
  appliedAt: number | undefined;
  /** Time before `appliedAt` in which a different instance may have read the new record, by its own clock (ms). */
  marginMs: number;
}

export type AuditResult = Exclude<LabelValue<'auditResult'>, 'skipped'>;

/**
 * Returns `older-after-acknowledged-write` only for an entry that was read before a write and served after it.
 * A record that differs for an unknown reason was changed by a write that bypassed the proxy.
 */
export function classify({ served: { entry, at }, record, writes }: AuditedAnswer): AuditResult {
  if (record === undefined || record.kind === 'refused') return 'inconclusive';
  if (isSameRecord(entry, record)) return 'equal';
  const { isInFlight, appliedAt = -Infinity, marginMs } = writes;
  // The answer may have been right when it was sent.
  if (isInFlight || appliedAt >= at) return 'inconclusive';
  if (entry.requestedAt >= appliedAt) return 'older-within-ttl';
  return entry.requestedAt < appliedAt - marginMs ? 'older-after-acknowledged-write' : 'inconclusive';
}

/** Whether both have the same public values. The message of a not-found answer does not count. */
export const isSameRecord = (entry: Pick<Entry, 'kind' | 'values'>, record: Outcome): boolean =>
  entry.kind === record.kind && (record.kind !== 'found' || entry.values === record.values);
