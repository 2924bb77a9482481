// The caller of a request to a Handle server, which decides its share of the slots.
import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';

/** From first to last. Refresh-ahead and batches are in the background. */
export const CLASSES = ['preferred', 'normal', 'background'] as const;
export type CallerClass = (typeof CLASSES)[number];

export interface Caller {
  class: CallerClass;
  /** Its network: one client has no more than a share. Undefined for work of our own. */
  client: string | undefined;
  /** The proxies of our kind that the request has passed, as in `Via`; undefined for none. */
  via?: string;
  /** Its network, where its misses are judged (`traffic.enumeration`); undefined for callers that are never limited. */
  network?: string | undefined;
}

/** A proxy's name in `Via` (RFC 9110 §7.6.3). It differs by proxy, so that a chain of proxies is not taken for a loop. */
export const newPseudonym = (): string => `handle-resolver-proxy-${randomBytes(4).toString('hex')}`;

const PSEUDONYM = /\bhandle-resolver-proxy-[\w-]{1,64}/g;

/** Those that come last: a client can make up the ones before. A loop of more proxies ends by the time limit. */
const MAX_PROXIES = 10;

/**
 * What is passed on of a `Via` with a read that callers share: otherwise two proxies that lead to each other would not
 * find their names. Other names are left out: one client could make a gateway refuse the read of all.
 */
export function proxiesIn(via: string | undefined): string | undefined {
  const names = via?.match(PSEUDONYM)?.slice(-MAX_PROXIES) ?? [];
  return names.length === 0 ? undefined : names.map((name) => `1.1 ${name}`).join(', ');
}

/** Clients that cannot be told apart are one: a flood from them leaves others their part of the slots. */
export const UNKNOWN_CLIENTS: Caller = { class: 'normal', client: 'unknown' };

export const OWN_WORK: Caller = { class: 'background', client: undefined };

/** Judges a request before the Handle server is asked for it. @throws ServiceError RATE_LIMITED, TRAFFIC_REFUSED */
export type Admit = (req: IncomingMessage, res: ServerResponse) => Caller | Promise<Caller>;

/** Makes a read that memory does not answer, unless its network is limited. @throws ServiceError RATE_LIMITED */
export type LimitMiss = <T>(
  caller: Caller | undefined,
  read: () => Promise<T>,
  /** Whether the handle does not exist; undefined when the answer does not tell. */
  isUnknown: (answer: T) => boolean | undefined,
) => Promise<T>;
