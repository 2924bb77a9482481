// The result of a read: an entry with its source and freshness, or a refusal.
import type { Entry } from '../cache/entry.js';
import type { Refused } from '../handle/outcome.js';

/** The reason for a stale response: the load failed, timed out, or is not retried yet after a failure. */
export type StaleReason = 'error' | 'timeout' | 'backoff';

export interface FromEntry {
  kind: 'entry';
  entry: Entry;
  /** The source of the entry. */
  from: 'memory' | 'redis' | 'upstream';
  /** The time of the read (ms), from which its age and its freshness count. */
  readAt: number;
  /** Whether this caller joined the load of a different caller. */
  collapsed?: boolean;
  stale?: StaleReason | undefined;
  /** Whether the upstream answer was stored. */
  stored?: boolean;
}

/** An entry, or a refusal by the server. Failures are thrown as ServiceError. */
export type Resolution = FromEntry | { kind: 'refused'; refused: Refused };
