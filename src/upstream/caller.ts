// The caller of an upstream request, which determines its share of the slots.
import { randomBytes } from 'node:crypto';
import type { HandleRef } from '../handle/handle.js';

/** Priority classes, highest first. Refresh-ahead and requests for many handles run in the background. */
export const CLASSES = ['preferred', 'normal', 'background'] as const;
export type CallerClass = (typeof CLASSES)[number];

export interface Caller {
  class: CallerClass;
  /** Client network, whose share of the slots is limited. Undefined for the proxy's own work. */
  client: string | undefined;
  /** Previous handle-resolver-proxies in the `Via` chain; undefined if there are none. */
  via?: string | undefined;
  /** Network charged for misses; undefined for callers without limits. */
  network?: string | undefined;
}

/** Creates a proxy's unique name for `Via` (RFC 9110 §7.6.3), so that a chain of proxies is not mistaken for a loop. */
export const newPseudonym = (): string => `handle-resolver-proxy-${randomBytes(4).toString('hex')}`;

const PSEUDONYM = /\bhandle-resolver-proxy-[\w-]{1,64}/g;

/** Maximum names to forward: the last ones, as clients can forge the others. The timeout ends longer loops. */
const MAX_PROXIES = 10;

/**
 * Extracts the `Via` entries to forward with a shared read, so that two proxies that point at each other detect the
 * loop. Drops all other names, because a client could use them to make a gateway reject the read for all callers.
 */
export function proxiesIn(via: string | undefined): string | undefined {
  const names = via?.match(PSEUDONYM)?.slice(-MAX_PROXIES) ?? [];
  return names.length === 0 ? undefined : names.map((name) => `1.1 ${name}`).join(', ');
}

/** Shared identity for unidentifiable clients, so that a flood of them cannot take every slot. */
export const UNKNOWN_CLIENTS: Caller = { class: 'normal', client: 'unknown' };

export const OWN_WORK: Caller = { class: 'background', client: undefined };

/** A read that misses in memory. */
export interface Miss<T> {
  handle: HandleRef;
  caller: Caller | undefined;
  read: () => Promise<T>;
  /** Whether the handle is unknown; undefined if the result does not show it. */
  isUnknown: (answer: T) => boolean | undefined;
}

/** Runs a miss, or rejects it. @throws ServiceError */
export type AroundMiss = <T>(miss: Miss<T>) => Promise<T>;
