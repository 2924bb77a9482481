// The result of resolving a handle, and the referral in it.
import type { Entry } from '../cache/entry.js';
import { toText } from '../handle/bytes.js';
import type { Refused } from '../handle/outcome.js';
import type { HandleValue } from '../handle/value.js';
import { type Referral, referralIn } from '../upstream/referrals.js';

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

/** The referral in a prefix record or a refusal; undefined for a handle that does not exist. */
export function referralOf(resolution: Resolution): Referral | undefined {
  if (resolution.kind === 'refused') return referralIn({ ...resolution.refused, kind: 'refused' });
  const { entry } = resolution;
  if (entry.kind === 'not-found') return undefined;
  return { values: entry.kind === 'found' ? (JSON.parse(toText(entry.values)) as HandleValue[]) : [] };
}
