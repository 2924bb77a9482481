import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    include: ['test/**/*.test.ts'],
    // Many tests start programs and a Redis; on a busy machine that alone takes seconds.
    testTimeout: 30_000,
    hookTimeout: 30_000,
    // What is polled for has to come; where it has to come soon, the test measures that itself.
    expect: { poll: { timeout: 5000 } },
    restoreMocks: true,
  },
});
