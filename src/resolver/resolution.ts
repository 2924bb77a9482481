// The result of resolving a handle.
import type { Entry } from '../cache/entry.js';
import type { Refused } from '../handle/outcome.js';

/** The reason for a stale response: the load failed, is late, or was not retried yet after a failure. */
export type StaleReason = 'error' | 'late' | 'resting';

export interface FromEntry {
  kind: 'entry';
  entry: Entry;
  /** The source of the entry. */
  from: 'memory' | 'redis' | 'upstream';
  /** True when this caller joined a load that another caller had started. */
  collapsed: boolean;
  stale?: StaleReason;
  /** Whether an answer of the upstream was stored. */
  stored?: boolean;
}

/** An entry, or the server's refusal. Failures are thrown as ServiceError. */
export type Resolution = FromEntry | { kind: 'refused'; refused: Refused };
