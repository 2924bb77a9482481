// What a part of the app is given, for a test of the part alone: a silent log, metrics of its own, the clock of the system.
import { systemClock } from '../../src/cache/clock.js';
import type { Context } from '../../src/context.js';
import { createLogger } from '../../src/observe/logger.js';
import { createMetrics } from '../../src/observe/metrics.js';

export const createContext = (given: Partial<Context> = {}): Context => ({
  log: createLogger({ level: 'silent' }),
  metrics: createMetrics(),
  clock: systemClock,
  tracer: undefined,
  ...given,
});
