// The caller of a request to a Handle server, which determines its share of the slots.
import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';

/** Priorities, highest first. Refresh-ahead and batches are in the background. */
export const CLASSES = ['preferred', 'normal', 'background'] as const;
export type CallerClass = (typeof CLASSES)[number];

export interface Caller {
  class: CallerClass;
  /** Network of the client, which gets at most a share of the slots. Undefined for work of the proxy itself. */
  client: string | undefined;
  /** Other handle-resolver-proxies that the request has passed, as in `Via`; undefined if there are none. */
  via?: string;
  /** Network that its misses count for (`traffic.enumeration`); undefined for callers that are never limited. */
  network?: string | undefined;
}

/** Creates the name of a proxy in `Via` (RFC 9110 §7.6.3), which is unique, so that a chain of proxies is not a loop. */
export const newPseudonym = (): string => `handle-resolver-proxy-${randomBytes(4).toString('hex')}`;

const PSEUDONYM = /\bhandle-resolver-proxy-[\w-]{1,64}/g;

/** Maximum names that are kept, the last ones, because clients can forge the others. Longer loops end by the timeout. */
const MAX_PROXIES = 10;

/**
 * The part of `Via` that is forwarded with a shared read, so that two proxies that point at each other detect the loop.
 * Other names are dropped, because a client could use them to make a gateway reject the read for all callers.
 */
export function proxiesIn(via: string | undefined): string | undefined {
  const names = via?.match(PSEUDONYM)?.slice(-MAX_PROXIES) ?? [];
  return names.length === 0 ? undefined : names.map((name) => `1.1 ${name}`).join(', ');
}

/** Clients that cannot be identified share one identity, so that a flood of them cannot take every slot. */
export const UNKNOWN_CLIENTS: Caller = { class: 'normal', client: 'unknown' };

export const OWN_WORK: Caller = { class: 'background', client: undefined };

/** Applies the traffic rules before an upstream request. @throws ServiceError RATE_LIMITED, TRAFFIC_REFUSED */
export type Admit = (req: IncomingMessage, res: ServerResponse) => Caller | Promise<Caller>;

/** Runs a read that misses in memory, unless the network is limited. @throws ServiceError RATE_LIMITED */
export type LimitMiss = <T>(
  caller: Caller | undefined,
  read: () => Promise<T>,
  /** Whether the handle does not exist; undefined when the answer does not show it. */
  isUnknown: (answer: T) => boolean | undefined,
) => Promise<T>;
