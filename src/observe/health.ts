// Provides readiness checks, the startup checks, and detection of a blocked event loop.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Config } from '../config/schema.js';
import { upstreamServers } from '../config/upstream-servers.js';
import type { Hooks } from '../hooks.js';
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
  hooks: Hooks;
  cache: {
    memory: { usage: () => readonly StoreUsage[] };
    redisState: () => 'up' | 'down' | 'disabled';
    isRedisReadable: () => boolean;
    holdsRedisEntry: () => Promise<boolean>;
  };
}

export type StartChecks = ReturnType<typeof addStartChecks>;

/**
 * Registers the startup checks. A passed check stays passed, because an instance still serves readers after
 * an upstream failure.
 */
export function addStartChecks(config: Config, { readiness, cache, hooks }: StartChecksParts) {
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
  for (const { name, isReady } of hooks.startCheck) readiness.register(name, isReady);
  // Without a Handle server, only a seed, a snapshot or an import can bring what there is to serve.
  readiness.register(upstreamServers(config).length > 0 ? 'upstream' : 'records', () => {
    canAnswer ||= cache.memory.usage().some(({ entries }) => entries > 0);
    return canAnswer;
  });
  return {
    /** Records the first response from the upstream or a secondary. */
    upstreamAnswered: (): void => {
      canAnswer = true;
    },
  };
}

/**
 * Time for which a block is still reported after its end. It equals the default probe interval of Kubernetes,
 * which restarts a container after three consecutive failures: a single block fails at most one probe, and
 * repeated blocks fail every probe.
 */
const REMEMBERED_MS = 10_000;

/** Detects a blocked event loop by late heartbeats. Times are monotonic (ms). */
export class BlockWatch {
  readonly #everyMs: number;
  readonly #limitMs: number;
  #beatAt: number;
  #last = { blockedMs: 0, endedAt: -Infinity };

  /** `limitMs` is the maximum block duration. */
  constructor({ everyMs, limitMs, now }: { everyMs: number; limitMs: number; now: number }) {
    this.#everyMs = everyMs;
    this.#limitMs = limitMs;
    this.#beatAt = now;
  }

  beat(now: number): void {
    const blockedMs = this.#lateMs(now);
    if (blockedMs > this.#limitMs) this.#last = { blockedMs, endedAt: now };
    this.#beatAt = now;
  }

  /** Returns the duration (ms) of a current or recent block; undefined if within the limit. */
  blockedMs(now: number): number | undefined {
    // An overdue heartbeat may still be pending.
    const lateMs = this.#lateMs(now);
    if (lateMs > this.#limitMs) return lateMs;
    return now - this.#last.endedAt < REMEMBERED_MS ? this.#last.blockedMs : undefined;
  }

  #lateMs(now: number): number {
    return now - this.#beatAt - this.#everyMs;
  }
}

export type EventLoop = ReturnType<typeof watchEventLoop>;

const WINDOW_MS = 1000;
const RESOLUTION_MS = 20;
const BEAT_MS = 100;

/** Monitors the event loop. `maxBlockedMs` is the maximum block duration. */
export function watchEventLoop(maxBlockedMs: number) {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  histogram.enable();
  let delayMs = 0;
  const timer = setInterval(() => {
    // Subtracts the sampling resolution, which the histogram includes in every delay.
    delayMs = Math.max(0, histogram.percentile(99) / 1e6 - RESOLUTION_MS);
    histogram.reset();
  }, WINDOW_MS).unref();
  const watch = new BlockWatch({ everyMs: BEAT_MS, limitMs: maxBlockedMs, now: performance.now() });
  const beats = setInterval(() => {
    watch.beat(performance.now());
  }, BEAT_MS).unref();
  return {
    /** 99th percentile of the delay in the last full second (ms). */
    delayMs: () => delayMs,
    /** Returns the duration (ms) of a current or recent block; undefined if within the limit. */
    blockedMs: () => watch.blockedMs(performance.now()),
    close(): void {
      clearInterval(timer);
      clearInterval(beats);
      histogram.disable();
    },
  };
}
