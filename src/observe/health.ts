// Readiness checks by name, and the delay of the event loop.
import { monitorEventLoopDelay } from 'node:perf_hooks';

interface ReadinessReport {
  ready: boolean;
  notReady: string[];
}

export interface Readiness {
  register(name: string, isReady: () => boolean): void;
  /** Adds the failed checks of other processes. */
  include(notReady: () => readonly string[]): void;
  report(): ReadinessReport;
}

export function createReadiness(): Readiness {
  const checks = new Map<string, () => boolean>();
  const included: (() => readonly string[])[] = [];
  return {
    register(name, isReady) {
      if (checks.has(name)) throw new TypeError(`duplicate readiness check ${name}`);
      checks.set(name, isReady);
    },
    include(notReady) {
      included.push(notReady);
    },
    report() {
      const failed = [...checks].filter(([, isReady]) => !isReady()).map(([name]) => name);
      const notReady = [...failed, ...included.flatMap((list) => list())];
      return { ready: notReady.length === 0, notReady };
    },
  };
}

export interface EventLoop {
  /** 99th percentile of the last whole second (ms). */
  delayMs: () => number;
  close: () => void;
}

const WINDOW_MS = 1000;
const RESOLUTION_MS = 20;

export function watchEventLoop(): EventLoop {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  histogram.enable();
  let delayMs = 0;
  const timer = setInterval(() => {
    // The histogram measures the time between two ticks, which is at least the resolution.
    delayMs = Math.max(0, histogram.percentile(99) / 1e6 - RESOLUTION_MS);
    histogram.reset();
  }, WINDOW_MS);
  timer.unref();
  return {
    delayMs: () => delayMs,
    close() {
      clearInterval(timer);
      histogram.disable();
    },
  };
}
