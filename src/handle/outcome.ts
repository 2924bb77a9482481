// The outcome of resolving a handle upstream. Failures are thrown as ServiceError.
import type { Bytes } from './bytes.js';
import type { HandleValue, Ttl } from './value.js';

/** The handle exists: its public values as a JSON array, never empty, and their TTLs. */
export interface Found {
  kind: 'found';
  values: Bytes;
  ttls: Ttl[];
  /** The same values as objects. */
  parsed?: readonly HandleValue[];
}

/** The handle exists without public values (HTTP 200, code 200). */
interface Empty {
  kind: 'empty';
}

/** The handle does not exist (code 100). A server that is a proxy itself may add a message. */
interface NotFound {
  kind: 'not-found';
  message?: string;
}

/**
 * Another response: foreign prefix, referral, busy. It is relayed; `members` are those of its JSON without `handle`,
 * which is added in each caller's spelling if `namesHandle` is set.
 */
export interface Refused {
  kind: 'refused';
  status: number;
  members: Record<string, unknown>;
  namesHandle: boolean;
  retryAfter?: string;
}

/** Outcomes that may be cached. */
export type Answer = (Found | Empty | NotFound) & Source;

/** Marks answers of a mirror, which may lag behind the primary. */
interface Source {
  isFromMirror?: true;
}

export type Outcome = Answer | (Refused & Source);

/**
 * `changed`: entries are invalid. `unchanged`: they stay valid. `unknown`: the server may have carried out the write,
 * or may still do so.
 */
export type WriteOutcome = 'changed' | 'unchanged' | 'unknown';
