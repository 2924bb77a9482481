// Provides readiness checks, the startup checks, and detection of a blocked event loop.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Config } from '../config/schema.js';
import { upstreamServers } from '../config/upstream-servers.js';
import type { StoreUsage } from './metrics.js';

export type Readiness = ReturnType<typeof createReadiness>;

export function createReadiness() {
  const checks = new Map<string, () => boolean>();
  return {
    register(name: string, isReady: () => boolean): void {
      if (checks.has(name)) throw new TypeError(`duplicate readiness check ${name}`);
      checks.set(name, isReady);
    },
    report(): { ready: boolean; notReady: string[] } {
      const notReady = [...checks].filter(([, isReady]) => !isReady()).map(([name]) => name);
      return { ready: notReady.length === 0, notReady };
    },
  };
}

/** Maximum wait for the first Redis connection (ms); Redis is optional. */
const REDIS_WAIT_MS = 1000;

interface StartChecksParts {
  readiness: Readiness;
  cache: {
    memory: { usage: () => readonly StoreUsage[] };
    redisState: () => 'up' | 'down' | 'disabled';
    isRedisReadable: () => boolean;
    holdsRedisEntry: () => Promise<boolean>;
  };
}

/**
 * Registers the startup checks. A passed check stays passed, because an instance still serves readers after
 * an upstream failure. Returns a function that records the first response from the upstream or a secondary.
 */
export function addStartChecks(config: Config, { readiness, cache }: StartChecksParts): () => void {
  const startedAt = performance.now();
  let isConnected = cache.redisState() === 'disabled';
  let canAnswer = false;
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
  // Without a Handle server, only a seed, a snapshot or an import can bring what there is to serve.
  const isHolding = (): boolean => cache.memory.usage().some(({ entries }) => entries > 0);
  const name = upstreamServers(config).length > 0 ? 'upstream' : 'records';
  readiness.register(name, () => (canAnswer ||= isHolding()));
  return () => {
    canAnswer = true;
  };
}

/**
 * Time for which a block is still reported after its end. It equals the default probe interval of Kubernetes,
 * which restarts a container after three consecutive failures: a single block fails at most one probe, and
 * repeated blocks fail every probe.
 */
const REMEMBERED_MS = 10_000;

const WINDOW_MS = 1000;
const RESOLUTION_MS = 20;
const BEAT_MS = 100;

export function watchEventLoop(maxBlockedMs: number) {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  histogram.enable();
  let delayMs = 0;
  const timer = setInterval(() => {
    // Subtracts the sampling resolution, which the histogram includes in every delay.
    delayMs = Math.max(0, histogram.percentile(99) / 1e6 - RESOLUTION_MS);
    histogram.reset();
  }, WINDOW_MS).unref();
  let beatAt = performance.now();
  let lastBlock = { ms: 0, endedAt: -Infinity };
  const lateMs = (): number => performance.now() - beatAt - BEAT_MS;
  const beats = setInterval(() => {
    const ms = lateMs();
    beatAt = performance.now();
    if (ms > maxBlockedMs) lastBlock = { ms, endedAt: beatAt };
  }, BEAT_MS).unref();
  return {
    /** 99th percentile of the delay in the last full second (ms). */
    delayMs: () => delayMs,
    /** Returns the duration (ms) of a current or recent block; undefined if there is none. */
    blockedMs: (): number | undefined => {
      // The beat that ends a block may still be due.
      const ms = lateMs();
      if (ms > maxBlockedMs) return ms;
      return performance.now() - lastBlock.endedAt < REMEMBERED_MS ? lastBlock.ms : undefined;
    },
    close(): void {
      clearInterval(timer);
      clearInterval(beats);
      histogram.disable();
    },
  };
}
