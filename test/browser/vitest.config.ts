import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    root: new URL('../..', import.meta.url).pathname,
    include: ['test/browser/*.browser.ts'],
    // A browser on a busy machine takes seconds for each page, and many to start.
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
