// What asking for a handle can lead to. Failures are not outcomes: they are thrown as ServiceError.
import type { Bytes } from './bytes.js';
import type { Ttl } from './value.js';

/** The handle exists: its public values as a JSON array, never empty, and their TTLs. */
export interface Found {
  kind: 'found';
  values: Bytes;
  ttls: Ttl[];
}

/** The handle exists but shows the public nothing (HTTP 200, code 200). */
export interface Empty {
  kind: 'empty';
}

/** There is no such handle (code 100). A server that is itself a proxy may say why. */
export interface NotFound {
  kind: 'not-found';
  message?: string;
}

/**
 * The server answered, but neither with a record nor with "not found": foreign prefix, referral,
 * busy. Passed on in its own form; `members` are those of its JSON without `handle`, which every
 * caller gets in the own spelling when `namesHandle`.
 */
export interface Refused {
  kind: 'refused';
  status: number;
  members: Record<string, unknown>;
  namesHandle: boolean;
  retryAfter?: string;
}

/** Outcomes that may be kept. */
export type Answer = (Found | Empty | NotFound) & Source;

/** A mirror may not know yet what the primary knows. */
interface Source {
  isFromMirror?: true;
}

export type Outcome = Answer | (Refused & Source);
