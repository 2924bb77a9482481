// Creates a context for testing a part alone, with the log as a list of lines.
import { systemClock } from '../../src/clock.js';
import type { Context } from '../../src/context.js';
import { createHooks } from '../../src/hooks.js';
import { createLogger } from '../../src/observe/logger.js';
import { createMetrics } from '../../src/observe/metrics.js';

interface TestContext extends Context {
  /** Log lines, oldest first. */
  lines: Record<string, unknown>[];
}

/**
 * Shared, because each registry monitors the whole process. A test that reads metrics creates a separate
 * registry.
 */
const METRICS = createMetrics();

export function testContext(changes: Partial<Context> = {}): TestContext {
  const lines: TestContext['lines'] = [];
  const write = (line: string): void => void lines.push(JSON.parse(line) as Record<string, unknown>);
  return {
    log: createLogger({ level: 'trace', destination: { write } }),
    isLogged: () => true,
    metrics: METRICS,
    // Calls Date.now each time, because a test may fake it.
    clock: { ...systemClock, now: () => Date.now() },
    hooks: createHooks(),
    lines,
    ...changes,
  };
}
