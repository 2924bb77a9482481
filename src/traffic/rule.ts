// What traffic rules look at, and whether a rule concerns hits.
import type { InterfaceName, TrafficRule } from '../config/schema-traffic.js';

/** Undefined where a request has no such thing: a write is neither a hit nor a miss. */
export interface RequestFacts {
  address: string;
  userAgent: string;
  method: string;
  interface: InterfaceName;
  handle: string | undefined;
  /** Value of the header Authorization. */
  credentials: string | undefined;
  /** A read that memory answers, or one that may need the Handle server. */
  reads: 'hits' | 'misses' | undefined;
}

export const isOfHandles = ({ match }: TrafficRule): boolean =>
  match.handle !== undefined || match.prefix !== undefined;

/** Whether a rule does something with hits. A class alone does not: it decides who waits, and hits never wait. */
export const concernsHits = ({ match, limit, answer, log, shadow }: TrafficRule): boolean =>
  match.reads !== 'misses' && (limit !== undefined || answer !== undefined || log || shadow);
