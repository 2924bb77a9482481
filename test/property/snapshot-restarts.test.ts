// A proxy that is killed at any call of the file system, and restarted, restores no record from before an acknowledged change.
import { AsyncLocalStorage } from 'node:async_hooks';
import { open, readdir, rename, stat, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, vi } from 'vitest';
import type { Entry, KeyedEntry } from '../../src/cache/entry.js';
import { MemoryStore } from '../../src/cache/memory/memory-store.js';
import type { Deleted } from '../../src/cache/store.js';
import { toText } from '../../src/handle/bytes.js';
import type { Host } from '../../src/host.js';
import { Snapshot } from '../../src/plugins/snapshot/snapshot.js';
import { newFolder } from '../support/folder.js';
import { fc, test } from '../support/property.js';
import { rounds } from '../support/property-rounds.js';
import { NOW, entryOf } from '../support/store-contract.js';

vi.mock('node:fs/promises', { spy: true });

const EVERY_MS = 60_000;
const KEYS = ['21.T1/a', '21.T1/b', '21.T2/c'];

/** A life of the process: the file system does nothing once it is killed. */
interface Life {
  callsLeft: number;
  isDiskFull: boolean;
  die: () => void;
}

const lives = new AsyncLocalStorage<Life>();

/** Ends the life that makes its last call. */
async function beforeCall(): Promise<void> {
  const life = lives.getStore();
  if (life === undefined || --life.callsLeft >= 0) return;
  life.die();
  await new Promise(() => undefined);
}

type Call = (...args: unknown[]) => Promise<unknown>;

beforeEach(async () => {
  const real = await vi.importActual<Record<string, Call>>('node:fs/promises');
  for (const [name, call] of Object.entries({ open, readdir, rename, unlink, writeFile }))
    vi.mocked(call as Call).mockImplementation(async (...args) => {
      await beforeCall();
      const isFull = name === 'writeFile' && lives.getStore()?.isDiskFull === true;
      if (isFull) throw Object.assign(new Error('ENOSPC'), { syscall: 'write' });
      return real[name]!(...args);
    });
});

type Step =
  | { kind: 'load' | 'write'; key: string }
  | { kind: 'purge'; prefix: string }
  | { kind: 'snapshot' | 'full' | 'room' }
  /** Lets the file system do as many calls. */
  | { kind: 'calls'; count: number };

const key = fc.constantFrom(...KEYS);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('load'), key }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('write'), key }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('purge'), prefix: fc.constantFrom('', '21.T1/') }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('snapshot') }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('full', 'room') }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('calls'), count: fc.nat(30) }) },
);
const lifeArbitrary: fc.Arbitrary<LifePlan> = fc.record({
  steps: fc.array(step, { minLength: 3, maxLength: 25 }),
  calls: fc.oneof(fc.nat(40), fc.constant(Infinity)),
  stops: fc.boolean(),
});

const versionOf = (entry: Entry): number => Number(/"value":"(\d+)"/.exec(toText(entry.values))?.[1]);

/** The newest version of each record, and that of the last acknowledged change. */
class Records {
  readonly newest = new Map(KEYS.map((each) => [each, 0]));
  readonly acknowledged = new Map(KEYS.map((each) => [each, 0]));

  change(isChanged: (key: string) => boolean): () => void {
    const changed = KEYS.filter(isChanged);
    for (const each of changed) this.newest.set(each, this.newest.get(each)! + 1);
    const versions = changed.map((each) => [each, this.newest.get(each)!] as const);
    return () => {
      for (const [each, version] of versions) this.acknowledged.set(each, version);
    };
  }

  assertNoneOlder(memory: MemoryStore): void {
    for (const each of KEYS) {
      const entry = memory.inspect(each)?.entry;
      if (entry !== undefined)
        expect(versionOf(entry), each).toBeGreaterThanOrEqual(this.acknowledged.get(each)!);
    }
  }
}

interface LifePlan {
  steps: readonly Step[];
  /** Calls of the file system after which the process is killed. */
  calls: number;
  /** Whether the process is stopped, rather than killed, if it gets to the end of its steps. */
  stops: boolean;
}

/** A cache with a snapshot, whose interval ends when a step says so. */
function createProxy(file: string) {
  const bounds = { maxBytes: 1e9, found: { maxEntries: 1e6 }, notFound: { maxEntries: 1e6 } };
  const memory = new MemoryStore({ bounds, now: () => NOW });
  const nothing = (): void => undefined;
  const state = { endInterval: nothing };
  const clock = {
    ...{ now: () => NOW, wall: () => NOW, monotonic: () => 0 },
    after(ms: number, run: () => void) {
      if (ms === EVERY_MS) state.endInterval = run;
      else if (ms < 1000) setImmediate(run);
      return nothing;
    },
  };
  const log = { info: nothing, warn: nothing };
  const host = { cache: { memory }, clock, log, metrics: { counterOf: () => nothing } } as unknown as Host;
  const restore = ({ key: each, entry }: KeyedEntry, ticket: number): boolean =>
    memory.restore(each, entry, ticket) === 'restored';
  const snapshot = new Snapshot({ file, everyMs: EVERY_MS, identity: 'upstream', restore }, host);
  return { memory, snapshot, state };
}

async function live(records: Records, file: string, { steps, stops }: LifePlan): Promise<void> {
  const { memory, snapshot, state } = createProxy(file);
  const deleting = async (deleted: Deleted): Promise<void> => {
    const acknowledge = records.change((each) =>
      'key' in deleted ? deleted.key === each : each.startsWith(deleted.prefix),
    );
    if ('key' in deleted) memory.forget(deleted.key);
    else memory.ban({ prefix: deleted.prefix, isSoft: false });
    await snapshot.recordDeletion(deleted);
    acknowledge();
  };
  void snapshot.start();
  for (const each of steps) {
    if (each.kind === 'load')
      memory.set(each.key, entryOf(String(records.newest.get(each.key))), memory.moment());
    else if (each.kind === 'write') await deleting({ key: each.key });
    else if (each.kind === 'purge') await deleting({ prefix: each.prefix });
    else if (each.kind === 'snapshot') state.endInterval();
    else if (each.kind === 'calls')
      for (let call = 0; call < each.count; call++) await stat(file).catch(() => undefined);
    else lives.getStore()!.isDiskFull = each.kind === 'full';
    records.assertNoneOlder(memory);
  }
  if (stops) await snapshot.close();
}

/** Lives until the end of the steps, or until the process is killed. */
async function liveAndDie(records: Records, file: string, plan: LifePlan): Promise<void> {
  const self: Life = { callsLeft: plan.calls, isDiskFull: false, die: () => undefined };
  const died = new Promise<void>((resolve) => (self.die = resolve));
  await Promise.race([died, lives.run(self, () => live(records, file, plan))]);
  self.callsLeft = 0;
}

describe('snapshot', () => {
  test.prop([fc.array(lifeArbitrary, { minLength: 1, maxLength: 4 })], { numRuns: rounds(300) })(
    'restores no record from before an acknowledged change, whenever the process is killed',
    async (plans) => {
      const file = join(newFolder(), 'snapshot');
      const records = new Records();
      for (const plan of plans) await liveAndDie(records, file, plan);
      const { memory, snapshot } = createProxy(file);
      await snapshot.start();
      records.assertNoneOlder(memory);
    },
  );
});
