import { readFileSync, readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { openApiDocuments } from '../config/openapi-documents.js';
import { type TestProjectConfiguration, defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { isThorough } from './support/thorough.js';

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
  'test/http/{audit,batch-work,changes-webhook,snapshot-file,traffic-enumeration}.test.ts',
  'test/mirror/{lists,mirror}.test.ts',
  'test/native/recorded-exchanges.test.ts',
];

/** Tests that measure time, or use all cores: they run in sequence, without other tests. */
const ALONE = [
  'test/attack/expensive.test.ts',
  'test/faults/overload.test.ts',
  'test/live/redis-trouble-reads.test.ts',
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

/**
 * These run alone too, but not in `.ci/run`, because they take minutes: random input, mutations, chaos, web servers in
 * front, a rolling update behind one, all themes.
 */
const LONG_RUNS = [
  'test/browser/layout.test.ts',
  'test/chaos/chaos.test.ts',
  'test/fuzz/{answers,framing,native-codec,native-listeners,records,requests}.test.ts',
  'test/rollout/{front-examples,rolling-update,tls-in-front}.test.ts',
  'test/simulation/{mutations,simulation}.test.ts',
];

/**
 * These replace modules or functions that other files use too: a module that such a file has loaded before keeps the
 * former ones. The last file needs a nock that no other has used.
 */
const REPLACING = [
  ...readdirSync('test', { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.test.ts'))
    .map((path) => `test/${path}`)
    .filter((path) => /^\s*vi\.(?:do)?[mM]ock\(/m.test(readFileSync(path, 'utf8'))),
  'test/http/raw-response.test.ts',
  'test/redirect/handle-forms.test.ts',
];

/** Counts executed blocks of src: V8 counts none in functions that were compiled before, so it needs isolation. */
const COUNTING = ['test/attack/cost.test.ts'];

/** Tests of the interfaces of the core, which the check runs a second time without any plugin. */
const CORE = [
  'test/http/{authoritative,cache-headers,contradicted-entries,not-found,one-load,only-if-cached,stale}.test.ts',
  'test/http/{bad-input,cors,failed-handles,path-case,questions,refresh-ahead,request-id}.test.ts',
  'test/http/{forwarded-endpoints,ignored-login,jsonp-login,own-writes,pass-through-{credentials,lists}}.test.ts',
  'test/http/writes-*.test.ts',
  'test/redirect/plain.test.ts',
  'test/v2/!(lock|search).test.ts',
];

const BROWSER = within('browser');

/** The longest test files of each project, which start first so that the run does not end waiting for them. */
const LONG = [
  'attack/(cost|eviction)',
  'browser/pages',
  'cli/(readme|warm)',
  'http/(audit|batch-work|snapshot-file)',
  'live/(changes|coherence-faults|conditional-(slow-redis|writes)|goes-on|shutdown|start-probes)',
  'live/redis-(cluster|deployments|failback|garbage|login|loss-cost|sentinel|trouble)',
  'mirror/(lists|mirror)',
  'rollout/package',
];
const LONG_FILE = new RegExp(`/test/(${LONG.join('|')})\\.test\\.ts$`);

/** Files that wait run before those that compute, one project after the other, because a worker runs only one. */
const ORDER = ['full, isolated', 'full', 'browser', 'full, without plugins', 'quick', 'quick, isolated'];

const placeOf = ({ moduleId, project }: TestSpecification): number =>
  2 * ORDER.indexOf(project.name) + (LONG_FILE.test(moduleId) ? 0 : 1);

class LongFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).sort((one, other) => placeOf(one) - placeOf(other));
  }
}

interface Group {
  include: string[];
  exclude?: string[];
  isolate?: boolean;
  env?: Record<string, string>;
}

const CORES = Math.min(2, availableParallelism());
/**
 * Files at a time. Each quick file waits for timers a third of its time; other files of the check wait more: for programs to
 * start, and for leases to end. More files at a time only cost CPU, because each process reads src.
 */
const FILES = isThorough ? 2 * CORES + 1 : CORES + 1;

/** A project that runs together with the others of these. */
const together = (name: string, group: Group): TestProjectConfiguration => ({
  extends: true,
  test: { name, ...group, maxWorkers: FILES, sequence: { groupOrder: 0 } },
});

/** A project whose files run in sequence, after the projects with a lower order. */
const alone = (name: string, groupOrder: number, group: Group): TestProjectConfiguration => ({
  extends: true,
  test: { name, ...group, maxWorkers: 1, sequence: { groupOrder } },
});

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
    // `npm run coverage`.
    coverage: {
      provider: 'v8',
      include: ['src/**/*.ts'],
      reporter: ['text-summary'],
      reportsDirectory: 'coverage',
    },
    // A rare poll leaves the machine idle in `npm test`; in the check, where more files wait, a frequent one takes the
    // CPU from what it waits for.
    expect: { poll: { timeout: 60_000, interval: isThorough ? 30 : 10 } },
    projects: [
      // `npm test`: unit and in-process tests.
      together('quick', {
        include: ['test/**/*.test.ts'],
        exclude: [...FULL, ...ALONE, ...MEASURED, ...LONG_RUNS, ...BROWSER, ...REPLACING],
      }),
      together('quick, isolated', { include: REPLACING, isolate: true }),
      together('full', { include: FULL, exclude: [...ALONE, ...MEASURED, ...LONG_RUNS, ...COUNTING] }),
      together('full, isolated', { include: COUNTING, isolate: true }),
      together('full, without plugins', { include: CORE, env: { WITHOUT_PLUGINS: 'true' } }),
      together('browser', { include: BROWSER, exclude: LONG_RUNS }),
      alone('alone', 1, { include: ALONE }),
      alone('unchecked: long', 2, { include: LONG_RUNS }),
      alone('unchecked: measured', 3, { include: MEASURED }),
    ],
  },
});
