// Outcomes of upstream reads and writes. Failures are thrown as ServiceError.
import type { Bytes } from './bytes.js';
import type { HandleValue, Ttl } from './value.js';

/** An existing handle, with its public values as a non-empty JSON array, and their TTLs. */
export interface Found {
  kind: 'found';
  values: Bytes;
  ttls: Ttl[];
  /** The values, already parsed. */
  parsed?: readonly HandleValue[];
}

/** An existing handle without public values (HTTP 200, code 200). */
interface Empty {
  kind: 'empty';
}

/** A missing handle (code 100). A server that is itself a proxy may add a message. */
interface NotFound {
  kind: 'not-found';
  message?: string;
}

/**
 * A response that is passed to the client but not cached: foreign prefix, referral, server busy. `members` are its JSON
 * members except `handle`, which is added in each caller's spelling if `namesHandle` is set.
 */
export interface Refused {
  kind: 'refused';
  status: number;
  members: Record<string, unknown>;
  namesHandle: boolean;
  retryAfter?: string;
}

/** Cacheable outcomes. */
export type Answer = (Found | Empty | NotFound) & Source;

/** Marks outcomes from a secondary, which may lag behind the primary. */
interface Source {
  isFromSecondary?: true;
}

export type Outcome = Answer | (Refused & Source);

/**
 * `changed`: cached entries are invalid. `unchanged`: they remain valid. `unknown`: the server may have
 * executed the write, or may still do so.
 */
export type WriteOutcome = 'changed' | 'unchanged' | 'unknown';
