// Readiness: named checks, those of the start, and whether the event loop is blocked.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Config } from '../config/schema.js';
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

export type StartChecks = ReturnType<typeof addStartChecks>;

/** A check that has passed stays passed: an instance whose upstream goes down later still serves readers. */
export function addStartChecks(
  { admin }: Pick<Config, 'admin'>,
  { readiness, cache, restoring }: StartChecksParts,
) {
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
    /** The upstream or a mirror has answered. */
    upstreamAnswered: (): void => {
      canAnswer = true;
    },
  };
}

/**
 * By default an orchestrator probes every 10 s and restarts after three failures in a row. So a single hold fails one
 * probe at most, and a hold in each period fails all of them.
 */
const REMEMBERED_MS = 10_000;

/** Expects a beat at each interval; a late beat shows that the event loop was blocked. Times are monotonic (ms). */
export class HoldWatch {
  readonly #everyMs: number;
  readonly #limitMs: number;
  #beatAt: number;
  #last = { heldMs: 0, endedAt: -Infinity };

  /** `limitMs`: maximum time for which the event loop may be blocked; 0 for no limit. */
  constructor({ everyMs, limitMs, now }: { everyMs: number; limitMs: number; now: number }) {
    this.#everyMs = everyMs;
    this.#limitMs = limitMs === 0 ? Infinity : limitMs;
    this.#beatAt = now;
  }

  beat(now: number): void {
    const heldMs = this.#lateMs(now);
    if (heldMs > this.#limitMs) this.#last = { heldMs, endedAt: now };
    this.#beatAt = now;
  }

  /** How long the event loop is, or was a moment ago, blocked (ms); undefined if within the limit. */
  heldMs(now: number): number | undefined {
    // This call may come before the overdue beat.
    const lateMs = this.#lateMs(now);
    if (lateMs > this.#limitMs) return lateMs;
    return now - this.#last.endedAt < REMEMBERED_MS ? this.#last.heldMs : undefined;
  }

  #lateMs(now: number): number {
    return now - this.#beatAt - this.#everyMs;
  }
}

export type EventLoop = ReturnType<typeof watchEventLoop>;

const WINDOW_MS = 1000;
const RESOLUTION_MS = 20;
const BEAT_MS = 100;

/** `maxHoldMs`: 0 for no limit. */
export function watchEventLoop(maxHoldMs: number) {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  histogram.enable();
  let delayMs = 0;
  const timer = setInterval(() => {
    // The histogram measures the time between two ticks, which is at least the resolution.
    delayMs = Math.max(0, histogram.percentile(99) / 1e6 - RESOLUTION_MS);
    histogram.reset();
  }, WINDOW_MS).unref();
  const watch = new HoldWatch({ everyMs: BEAT_MS, limitMs: maxHoldMs, now: performance.now() });
  const beats = setInterval(() => {
    watch.beat(performance.now());
  }, BEAT_MS).unref();
  return {
    /** 99th percentile of the last whole second (ms). */
    delayMs: () => delayMs,
    /** How long the event loop is, or was a moment ago, blocked (ms); undefined if within the limit. */
    heldMs: () => watch.heldMs(performance.now()),
    close(): void {
      clearInterval(timer);
      clearInterval(beats);
      histogram.disable();
    },
  };
}
