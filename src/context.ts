// The log, metrics, clock and hooks that all parts share. They are fixed for the life of a process.
import type { Clock } from './clock.js';
import type { Hooks } from './hooks.js';
import type { IsLogged, Logger } from './observe/logger.js';
import type { Metrics } from './observe/metrics.js';

export interface Context {
  readonly log: Logger;
  /** Whether a request with a given result is logged, by the current settings. */
  readonly isLogged: IsLogged;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly hooks: Hooks;
}
