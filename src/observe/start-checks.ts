// Readiness at the start: until Redis was reached, and until there is something to answer with.
import type { Config } from '../config/schema.js';
import type { Readiness } from './health.js';
import type { StoreUsage } from './metrics.js';

/** Redis is optional: an instance waits no longer than this for the first contact with it (ms). */
const REDIS_WAIT_MS = 1000;

interface StartChecksParts {
  readiness: Readiness;
  restoring: { isReady: () => boolean };
  cache: {
    memory: { usage: () => readonly StoreUsage[] };
    redisState: () => 'up' | 'away' | 'unused';
    isRedisReadable: () => boolean;
    holdsRedisEntry: () => Promise<boolean>;
  };
}

export interface StartChecks {
  /** The upstream or a mirror has answered. */
  upstreamAnswered: () => void;
}

/** A check that has passed once does not fail any more: an upstream that goes down later takes no reader away. */
export function addStartChecks(
  { admin }: Pick<Config, 'admin'>,
  { readiness, cache, restoring }: StartChecksParts,
): StartChecks {
  const startedAt = performance.now();
  let isConnected = cache.redisState() === 'unused';
  let canAnswer = admin.readyWithoutUpstream;
  const isWaitOver = (): boolean => performance.now() - startedAt >= REDIS_WAIT_MS;

  readiness.register('redis', () => {
    if (!isConnected && cache.isRedisReadable()) {
      isConnected = true;
      void cache.holdsRedisEntry().then((isHeld) => {
        canAnswer ||= isHeld;
      });
    }
    return isConnected || isWaitOver();
  });
  readiness.register('seed', restoring.isReady);
  readiness.register('upstream', () => {
    canAnswer ||= cache.memory.usage().some(({ entries }) => entries > 0);
    return canAnswer;
  });
  return {
    upstreamAnswered() {
      canAnswer = true;
    },
  };
}
