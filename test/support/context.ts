// The context of a part that is tested alone: unread metrics, and the log as a list of lines.
import { systemClock } from '../../src/cache/clock.js';
import type { Context } from '../../src/context.js';
import { createLogger } from '../../src/observe/logger.js';
import { createMetrics } from '../../src/observe/metrics.js';

interface TestContext extends Context {
  /** Lines of the log, oldest first. */
  lines: Record<string, unknown>[];
}

/** Shared, because each instance watches the whole process. A test that reads its metrics creates its own. */
const METRICS = createMetrics();

export function testContext(changes: Partial<Context> = {}): TestContext {
  const lines: TestContext['lines'] = [];
  const write = (line: string): void => void lines.push(JSON.parse(line) as Record<string, unknown>);
  return {
    log: createLogger({ level: 'trace', destination: { write } }),
    isLogged: () => true,
    metrics: METRICS,
    // Read at each call, because a test may set the clock of the process.
    clock: { ...systemClock, now: () => Date.now() },
    tracer: undefined,
    reads: undefined,
    lines,
    ...changes,
  };
}
