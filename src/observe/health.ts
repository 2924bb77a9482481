// Readiness: checks by name, those of the start, and an event loop that is not blocked.
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
    redisState: () => 'up' | 'down' | 'disabled';
    isRedisReadable: () => boolean;
    holdsRedisEntry: () => Promise<boolean>;
  };
}

export type StartChecks = ReturnType<typeof addStartChecks>;

/** A check that has passed once does not fail any more: an upstream that goes down later takes no reader away. */
export function addStartChecks(
  { admin }: Pick<Config, 'admin'>,
  { readiness, cache, restoring }: StartChecksParts,
) {
  const startedAt = performance.now();
  let isConnected = cache.redisState() === 'disabled';
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
 * An orchestrator asks every 10 s and restarts after three failures in a row, by default: a single block may fail one
 * probe, and one that returns in each period fails all of them.
 */
const REMEMBERED_MS = 10_000;

/** Expects a beat every so often; a late one shows that its event loop stood still. Times are monotonic (ms). */
export class BlockWatch {
  readonly #everyMs: number;
  readonly #limitMs: number;
  #beatAt: number;
  #last = { blockedMs: 0, endedAt: -Infinity };

  /** `limitMs`: that long it may stand still; 0: for ever. */
  constructor({ everyMs, limitMs, now }: { everyMs: number; limitMs: number; now: number }) {
    this.#everyMs = everyMs;
    this.#limitMs = limitMs === 0 ? Infinity : limitMs;
    this.#beatAt = now;
  }

  beat(now: number): void {
    const blockedMs = this.#lateMs(now);
    if (blockedMs > this.#limitMs) this.#last = { blockedMs, endedAt: now };
    this.#beatAt = now;
  }

  /** For how long it has stood still, now or a moment ago; undefined when that was within the limit. */
  blockedMs(now: number): number | undefined {
    // The question may come before the beat that was due all the time.
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

/** `maxBlockedMs`: 0 for no limit. */
export function watchEventLoop(maxBlockedMs: number) {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  histogram.enable();
  let delayMs = 0;
  const timer = setInterval(() => {
    // The histogram measures the time between two ticks, which is at least the resolution.
    delayMs = Math.max(0, histogram.percentile(99) / 1e6 - RESOLUTION_MS);
    histogram.reset();
  }, WINDOW_MS).unref();
  const watch = new BlockWatch({ everyMs: BEAT_MS, limitMs: maxBlockedMs, now: performance.now() });
  const beats = setInterval(() => {
    watch.beat(performance.now());
  }, BEAT_MS).unref();
  return {
    /** 99th percentile of the last whole second (ms). */
    delayMs: () => delayMs,
    /** For how long it has stood still, now or a moment ago; undefined when that was within the limit. */
    blockedMs: () => watch.blockedMs(performance.now()),
    close(): void {
      clearInterval(timer);
      clearInterval(beats);
      histogram.disable();
    },
  };
}
