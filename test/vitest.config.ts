import { availableParallelism } from 'node:os';
import { openApiDocuments } from '../config/openapi-documents.js';
import { type TestProjectConfiguration, defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const within = (...folders: string[]): string[] => folders.map((folder) => `test/${folder}/**/*.test.ts`);

/** The built program, real Redis and other programs, the fault table, random input, the model and the simulation. */
const FULL = [
  ...within('attack', 'cli', 'faults', 'fuzz', 'live', 'model', 'rollout', 'simulation'),
  // Compiles a client, replays every recording against the document, and simulates thousands of requests.
  'test/openapi/{client,recordings}.test.ts',
  'test/upstream/overload-shares.test.ts',
  // Real servers, certificates and Redis, one for each wrong set-up.
  'test/process/wrong-setups.test.ts',
  // These wait for real timers and streams for seconds, or replay every recording.
  'test/http/{audit,batch-work,changes-webhook,snapshot-file}.test.ts',
  'test/mirror/{lists,mirror}.test.ts',
  'test/native/recorded-exchanges.test.ts',
];

/** Tests that measure time or memory, or use all cores: they run in sequence, without other tests. */
const ALONE = [
  'test/attack/expensive.test.ts',
  'test/faults/{hanging-server,overload,pipelined,unread-answers}.test.ts',
  'test/live/{redis-link,redis-trouble,write-instances}.test.ts',
  'test/redirect/hostile.test.ts',
];

/**
 * These run alone too, but not in `.ci/run`: measurements, tests that fail if the machine pauses, rolling updates
 * behind each web server, the image test, which downloads packages, and the proof of coherence.pml.
 */
const MEASURED = [
  'test/live/{bench,broken-records,redis-slow}.test.ts',
  'test/live/redis-{frozen,stopped}-writes.test.ts',
  'test/model/*.test.ts',
  'test/rollout/{front-rolling-updates,image}.test.ts',
  'test/soak/*.test.ts',
];

/** These run alone too, but not in `.ci/run`, because they take minutes: mutations, chaos, four web servers, all themes. */
const LONG_RUNS = [
  'test/browser/layout.test.ts',
  'test/chaos/chaos.test.ts',
  'test/rollout/front-examples.test.ts',
  'test/simulation/mutations.test.ts',
];

/** These replace functions that other files use too; the last one needs a nock that no other file has used. */
const REPLACING = ['test/http/{one-parse,raw-response,reads}.test.ts', 'test/redirect/handle-forms.test.ts'];

/** Counts executed blocks of src: V8 counts none in functions that were compiled before, so it needs isolation. */
const COUNTING = ['test/attack/cost.test.ts'];

const BROWSER = within('browser');

/** The longest test files of each group, which start first so that the run does not end waiting for them. */
const LONG = [
  'attack/(cost|eviction)',
  'cli/warm',
  'fuzz/answers',
  'http/(audit|batch-work|snapshot-file)',
  'live/(coherence-faults|conditional-slow-redis|goes-on|redis-cluster|redis-loss-cost)',
  'mirror/(lists|mirror)',
  'rollout/package',
  'simulation/simulation',
];
const LONG_FILE = new RegExp(`/test/(${LONG.join('|')})\\.test\\.ts$`);
const isLong = ({ moduleId }: TestSpecification): boolean => LONG_FILE.test(moduleId);

class LongFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

interface Group {
  include: string[];
  exclude?: string[];
  maxWorkers: number;
  isolate?: boolean;
}

/** Groups run in sequence. */
function project(name: string, groupOrder: number, group: Group): TestProjectConfiguration {
  return { extends: true, test: { name, ...group, sequence: { groupOrder } } };
}

const FILES = Math.min(2, availableParallelism());
/** One more than there are cores, because each file waits for timers a third of its time. */
const QUICK_FILES = FILES + 1;
/** Files that mostly wait: for programs to start, and for leases to end. */
const WAITING_FILES = 3 * FILES;

export default defineConfig({
  plugins: [openApiDocuments],
  test: {
    root: new URL('..', import.meta.url).pathname,
    restoreMocks: true,
    // Transformed files are kept, so that a second run starts sooner.
    experimental: { fsModuleCache: true },
    sequence: { sequencer: LongFilesFirst },
    // Files share a process: repeated imports of src took half of the time.
    isolate: false,
    setupFiles: ['test/support/clean-process.ts'],
    // Tests wait for events, not for a time: these limits only end a test that hangs, also on a machine that stalls.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    // Polls often, because a test that waits for the next look leaves the machine idle.
    expect: { poll: { timeout: 60_000, interval: 10 } },
    projects: [
      // `npm test`: unit and in-process tests.
      project('quick', 0, {
        include: ['test/**/*.test.ts'],
        exclude: [...FULL, ...ALONE, ...MEASURED, ...LONG_RUNS, ...BROWSER, ...REPLACING],
        maxWorkers: QUICK_FILES,
      }),
      project('quick, isolated', 0, {
        include: REPLACING,
        maxWorkers: QUICK_FILES,
        isolate: true,
      }),
      project('full', 1, {
        include: FULL,
        exclude: [...ALONE, ...MEASURED, ...LONG_RUNS, ...COUNTING],
        maxWorkers: WAITING_FILES,
      }),
      project('full, isolated', 1, { include: COUNTING, maxWorkers: WAITING_FILES, isolate: true }),
      project('browser', 1, { include: BROWSER, exclude: LONG_RUNS, maxWorkers: WAITING_FILES }),
      project('alone', 2, { include: ALONE, maxWorkers: 1 }),
      project('unchecked: long', 3, { include: LONG_RUNS, maxWorkers: 1 }),
      project('unchecked: measured', 4, { include: MEASURED, maxWorkers: 1 }),
    ],
  },
});
