// What every part is given: the log, the metrics, the clock and the tracer. It never changes while a process runs.
import type { Clock } from './cache/clock.js';
import type { IsLogged, Logger } from './observe/logger.js';
import type { Metrics } from './observe/metrics.js';
import type { Tracer } from './observe/tracer.js';

export interface Context {
  readonly log: Logger;
  /** Whether a request with this result has a line in the log; a reload may change it. */
  readonly isLogged: IsLogged;
  readonly metrics: Metrics;
  readonly clock: Clock;
  /** Undefined where no tracing endpoint is configured. */
  readonly tracer: Tracer | undefined;
}
