// How late the event loop is: everything this process does waits so long.
import { monitorEventLoopDelay } from 'node:perf_hooks';

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
    // What is measured is the time between two turns, which is never less than the resolution.
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
