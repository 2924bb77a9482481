import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

/** What measures time or memory, or fills the machine by itself: nothing else runs beside it. */
const ALONE = [
  'test/attack/expensive.test.ts',
  'test/chaos/*.test.ts',
  'test/faults/{overload,pipelined,unread-answers}.test.ts',
  'test/live/{bench,redis-link,redis-slow,redis-trouble,worker-killed,workers-late,write-instances}.test.ts',
  'test/live/redis-{frozen,stopped}-writes.test.ts',
  'test/redirect/hostile.test.ts',
  'test/soak/*.test.ts',
];

export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    restoreMocks: true,
    // Tests wait for events, not for a time: these limits only end what hangs, also on a machine that stands still.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 60_000 } },
    projects: [
      {
        extends: true,
        test: {
          name: 'together',
          include: ['test/**/*.test.ts'],
          exclude: ALONE,
          // Tests wait more than they work: for programs to start, and for time limits.
          maxWorkers: Math.min(2, availableParallelism()),
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: { name: 'alone', include: ALONE, maxWorkers: 1, sequence: { groupOrder: 1 } },
      },
    ],
  },
});
