import { availableParallelism } from 'node:os';
import { type TestProjectConfiguration, defineConfig } from 'vitest/config';

const within = (...folders: string[]): string[] => folders.map((folder) => `test/${folder}/**/*.test.ts`);

/** The built program, real Redis and other programs, the fault table, random input, the model and the simulation. */
const FULL = within('attack', 'cli', 'faults', 'fuzz', 'live', 'model', 'rollout', 'simulation');

/** Tests that measure time or memory, or fill the machine: one after the other, beside no other test. */
const ALONE = [
  'test/attack/expensive.test.ts',
  'test/chaos/*.test.ts',
  'test/faults/{overload,pipelined,unread-answers}.test.ts',
  'test/live/{bench,redis-link,redis-slow,redis-trouble,worker-killed,workers-late,write-instances}.test.ts',
  'test/live/redis-{frozen,stopped}-writes.test.ts',
  'test/redirect/hostile.test.ts',
  'test/soak/*.test.ts',
];

const BROWSER = within('browser');

interface Group {
  include: string[];
  exclude?: string[];
  maxWorkers: number;
}

/** Groups run one after the other. */
function project(name: string, groupOrder: number, group: Group): TestProjectConfiguration {
  return { extends: true, test: { name, ...group, sequence: { groupOrder } } };
}

// Tests wait more than they compute: for programs to start, and for time limits.
const TWO_FILES = Math.min(2, availableParallelism());

export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    restoreMocks: true,
    // Tests wait for events, not for a time: these limits only end a test that hangs, also on a machine that stalls.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 60_000 } },
    projects: [
      // `npm test`: unit and in-process tests.
      project('quick', 0, {
        include: ['test/**/*.test.ts'],
        exclude: [...FULL, ...ALONE, ...BROWSER],
        maxWorkers: TWO_FILES,
      }),
      project('full', 1, { include: FULL, exclude: ALONE, maxWorkers: TWO_FILES }),
      project('browser', 2, { include: BROWSER, maxWorkers: 1 }),
      project('alone', 3, { include: ALONE, maxWorkers: 1 }),
    ],
  },
});
