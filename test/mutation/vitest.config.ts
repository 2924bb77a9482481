// The tests that `npm run mutation` holds a mutation against: one process at a time, each test with a short limit.
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    root: new URL('../..', import.meta.url).pathname,
    include: ['test/**/*.test.ts'],
    exclude: ['test/simulation/mutations.test.ts'],
    restoreMocks: true,
    isolate: false,
    maxWorkers: 2,
    setupFiles: ['test/support/clean-process.ts'],
    testTimeout: 20_000,
    hookTimeout: 20_000,
    expect: { poll: { timeout: 5000, interval: 10 } },
  },
});
