// The result of resolving a handle.
import type { Entry } from '../cache/entry.js';
import type { Refused } from '../handle/outcome.js';

/** The reason for a stale response: the load failed, timed out, or is not retried yet after a failure. */
export type StaleReason = 'error' | 'timeout' | 'backoff';

export interface FromEntry {
  kind: 'entry';
  entry: Entry;
  /** The source of the entry. */
  from: 'memory' | 'redis' | 'upstream';
  /** Whether this caller joined the load of a different caller. */
  collapsed: boolean;
  stale?: StaleReason;
  /** Whether the upstream answer was stored. */
  stored?: boolean;
}

/** An entry, or a refusal by the server. Failures are thrown as ServiceError. */
export type Resolution = FromEntry | { kind: 'refused'; refused: Refused };

/** How a read was answered, for the log and metrics. */
export type ReadResult = 'hit' | 'miss' | 'stale' | 'authoritative' | 'refused';

export function resultOf(resolution: Resolution, { authoritative }: { authoritative: boolean }): ReadResult {
  if (resolution.kind === 'refused') return 'refused';
  if (authoritative) return 'authoritative';
  if (resolution.stale !== undefined) return 'stale';
  return resolution.from === 'upstream' ? 'miss' : 'hit';
}

/** Whether the handle exists; undefined for a refusal. */
export const existsBy = (resolution: Resolution): boolean | undefined =>
  resolution.kind === 'entry' ? resolution.entry.kind !== 'not-found' : undefined;
