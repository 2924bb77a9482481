// Scheduling of snapshot writes and reads. The tests count slices and pauses instead of measuring time.
import fs, {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs';
import { open, rename, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { KeyedEntry } from '../../src/cache/entry.js';
import { MemoryStore } from '../../src/cache/memory/memory-store.js';
import { ROW_BYTES } from '../../src/cache/memory/row-store.js';
import { LAST_SNAPSHOT_MS } from '../../src/plugins/snapshot/plugin.js';
import { Snapshot } from '../../src/plugins/snapshot/snapshot.js';
import type { Host } from '../../src/host.js';
import { toBytes } from '../../src/handle/bytes.js';
import { newFolder } from '../support/folder.js';
import { gate } from '../support/gate.js';
import { NOW, entryOf } from '../support/store-contract.js';

vi.mock('node:fs/promises', { spy: true });

const EVERY_MS = 60_000;

function memoryOf(records: number): MemoryStore {
  const bounds = { maxBytes: 1e9, found: { maxEntries: 1e6 }, notFound: { maxEntries: 1e6 } };
  const memory = new MemoryStore({ bounds, now: () => NOW });
  for (let at = 0; at < records; at++)
    memory.set(`21.T1/${at}`, entryOf('x'.repeat(600), { deleteAt: NOW + 1 }), memory.moment());
  return memory;
}

interface Traced {
  snapshot: Snapshot;
  /** Slices, pauses and records in order. */
  trace: string[];
  /** Fields of the log lines. */
  written: object[];
  loaded: object[];
  errors: object[];
  /** Timers of the interval that are neither over nor cancelled. */
  waiting: ReadonlySet<object>;
  /** Ends the time limit of the final snapshot. */
  runOut: () => void;
  /** Returns the largest size requested for a slice. */
  sliceBytes: () => number;
}

/**
 * Creates a snapshot with timers that run without delay and advance the clock, until the test ends. Calls
 * `onRest` at each pause.
 */
function trace(file: string, memory: MemoryStore, onRest: (rests: number) => void = () => undefined): Traced {
  const traced: string[] = [];
  const [written, loaded, errors]: [object[], object[], object[]] = [[], [], []];
  let [monotonic, rests, largest] = [0, 0, 0];
  const intervals: NodeJS.Immediate[] = [];
  const waiting = new Set<object>();
  let isOver = false;
  onTestFinished(() => {
    isOver = true;
  });
  let runOut = (): void => undefined;
  const rest = (ms: number, run: () => void): void => {
    monotonic += ms;
    traced.push('rest');
    onRest(++rests);
    setImmediate(run);
  };
  const source = {
    moment: () => memory.moment(),
    readFrom(first: number, maxBytes: number) {
      traced.push('slice');
      largest = Math.max(largest, maxBytes);
      return memory.readFrom(first, maxBytes);
    },
  };
  const host = {
    cache: { memory: source },
    clock: {
      now: () => NOW,
      wall: () => NOW,
      monotonic: () => monotonic,
      after(ms: number, run: () => void) {
        const timer = {};
        if (ms === LAST_SNAPSHOT_MS) runOut = run;
        else if (ms !== EVERY_MS) rest(ms, run);
        else if (written.length === 0 && !isOver) intervals.push(setImmediate(run));
        else waiting.add(timer);
        return () => {
          waiting.delete(timer);
          clearImmediate(intervals.pop());
        };
      },
    },
    log: {
      info: (fields: object, msg: string) => (msg === 'snapshot written' ? written : loaded).push(fields),
      warn: (fields: object) => errors.push(fields),
    },
    metrics: { counterOf: () => () => undefined },
  } as unknown as Host;
  const restore = ({ key, entry }: KeyedEntry, ticket: number): boolean => {
    traced.push('record');
    return memory.restore(key, entry, ticket) === 'restored';
  };
  const options = { file, everyMs: EVERY_MS, identity: 'upstream', restore };
  const snapshot = new Snapshot(options, host);
  return {
    ...{ snapshot, trace: traced, written, loaded, errors, waiting, sliceBytes: () => largest },
    runOut: () => {
      runOut();
    },
  };
}

/** Writes a snapshot, then makes its disk read-only: no line can be appended to a folder, and unlink does not remove one. */
async function writtenOnLostDisk(file: string): Promise<Traced> {
  const first = trace(file, memoryOf(10));
  await first.snapshot.start();
  // A snapshot that starts now would move the log away.
  await expect.poll(() => first.written).toHaveLength(1);
  rmSync(file);
  for (const path of [file, `${file}.deleted`]) mkdirSync(path);
  return first;
}

describe('snapshot', () => {
  describe('in the background', () => {
    test('pauses after each slice of at most 128 KiB', async () => {
      const run = trace(join(newFolder(), 'snapshot'), memoryOf(2000));
      await run.snapshot.start();
      await expect.poll(() => run.written).toMatchObject([{ records: 2000 }]);
      expect(run.sliceBytes()).toBe(128 * 1024);
      const slices = run.trace.filter((event) => event === 'slice').length;
      expect(slices).toBeGreaterThan(10);
      expect(run.trace.join(' ')).toBe(Array.from({ length: slices }, () => 'slice rest').join(' '));
    });

    test('is abandoned in favour of the final snapshot, and this is not logged', async () => {
      const folder = newFolder();
      let closing: Promise<void> | undefined;
      const run = trace(join(folder, 'snapshot'), memoryOf(2000), (rests) => {
        if (rests === 3) closing = run.snapshot.close();
      });
      await run.snapshot.start();
      await expect.poll(() => run.written).toMatchObject([{ records: 2000 }]);
      await closing;
      expect(run.written).toHaveLength(1);
      expect(run.errors).toEqual([]);
      expect(run.trace.filter((event) => event === 'rest')).toHaveLength(3);
      expect(readdirSync(folder)).toEqual(['snapshot']);
    });

    test('is read in slices of at most 200 records, with a pause after each', async () => {
      const file = join(newFolder(), 'snapshot');
      const first = trace(file, memoryOf(2000));
      await first.snapshot.start();
      await first.snapshot.close();
      const second = trace(file, memoryOf(0));
      await second.snapshot.start();
      expect(second.loaded).toMatchObject([{ records: 2000, restored: 2000 }]);
      const slices = second.trace.join('').split('rest');
      expect(slices.at(-1)).toBe('');
      expect(Math.max(...slices.map((slice) => slice.length / 'record'.length))).toBeLessThanOrEqual(200);
    });
  });

  test('does not restore a record that is deleted while the file is read', async () => {
    const file = join(newFolder(), 'snapshot');
    const first = trace(file, memoryOf(2000));
    await first.snapshot.start();
    await first.snapshot.close();
    const memory = memoryOf(0);
    const second = trace(file, memory, (rests) => {
      if (rests === 1) memory.forget('21.T1/1999');
    });
    await second.snapshot.start();
    expect(second.loaded).toMatchObject([{ records: 2000, restored: 1999 }]);
    expect(memory.peek('21.T1/1999')).toBeUndefined();
  });

  test('does not restore a record that is deleted while the file is written, and forgets older deletions', async () => {
    const folder = newFolder();
    const file = join(folder, 'snapshot');
    const memory = memoryOf(2000);
    const first = trace(file, memory, (rests) => {
      if (rests !== 1) return;
      // The first slice contains the record.
      memory.forget('21.T1/0');
      void first.snapshot.recordDeletion({ key: '21.T1/0' });
    });
    await first.snapshot.recordDeletion({ key: '21.T1/1' });
    await first.snapshot.start();
    await expect.poll(() => first.written).toMatchObject([{ records: 2000 }]);
    expect(readdirSync(folder)).toEqual(['snapshot', 'snapshot.deleted']);
    const restored = memoryOf(0);
    const second = trace(file, restored);
    await second.snapshot.start();
    expect(second.loaded).toMatchObject([{ records: 2000, restored: 1999 }]);
    expect(restored.peek('21.T1/0')).toBeUndefined();
  });

  test('does not restore a record whose deletion could not be logged while the file is written', async () => {
    const file = join(newFolder(), 'snapshot');
    const log = `${file}.deleted`;
    const memory = memoryOf(2000);
    const first = trace(file, memory, (rests) => {
      if (rests !== 1) return;
      memory.forget('21.T1/0');
      // No line can be appended to a folder, as on a full disk; then there is room again.
      mkdirSync(log);
      void first.snapshot.recordDeletion({ key: '21.T1/0' }).then(() => {
        rmdirSync(log);
      });
    });
    await first.snapshot.start();
    await expect.poll(() => first.written).toMatchObject([{ records: 1999 }]);
    expect(first.errors).toHaveLength(1);
    const restored = memoryOf(0);
    await trace(file, restored).snapshot.start();
    expect(restored.peek('21.T1/0')).toBeUndefined();
    expect(restored.peek('21.T1/1')).toBeDefined();
  });

  test('does not outlast a deletion that could not be logged while the file is replaced', async () => {
    const folder = newFolder();
    const file = join(folder, 'snapshot');
    const first = trace(file, memoryOf(10));
    let deleted: Promise<unknown> = Promise.resolve();
    vi.mocked(rename).mockImplementation(async (from, to) => {
      if (to === file) {
        mkdirSync(`${file}.deleted`);
        deleted = first.snapshot.recordDeletion({ key: '21.T1/0' }).then(() => existsSync(`${file}.tmp`));
        await vi.waitUntil(() => first.errors.length > 0, { interval: 1 });
        // A removal that does not wait is done by now.
        for (let calls = 0; calls < 20; calls++) await stat(folder);
      }
      renameSync(from, to);
    });
    onTestFinished(() => {
      vi.mocked(rename).mockReset();
    });
    await first.snapshot.start();
    await first.snapshot.close();
    expect(await deleted).toBe(false);
    expect([existsSync(file), first.written]).toEqual([false, []]);
  });

  test('does not replace the file after a deletion that could not be logged while the last block is written', async () => {
    const file = join(newFolder(), 'snapshot');
    const first = trace(file, memoryOf(10));
    const actual = await vi.importActual<typeof fs.promises>('node:fs/promises');
    vi.mocked(open).mockImplementation(async (path, ...flags) => {
      const handle = await actual.open(path, ...flags);
      if (path !== `${file}.tmp`) return handle;
      vi.spyOn(handle, 'sync').mockImplementation(async () => {
        mkdirSync(`${file}.deleted`, { recursive: true });
        await first.snapshot.recordDeletion({ key: '21.T1/0' });
      });
      return handle;
    });
    onTestFinished(() => {
      vi.mocked(open).mockReset();
    });
    await first.snapshot.start();
    await first.snapshot.close();
    expect([existsSync(file), first.written, first.errors.length]).toEqual([false, [], 1]);
  });

  test('whose file cannot be removed after a deletion that could not be logged: what to do is logged once', async () => {
    const file = join(newFolder(), 'snapshot');
    const first = await writtenOnLostDisk(file);
    await first.snapshot.recordDeletion({ key: '21.T1/0' });
    await first.snapshot.recordDeletion({ key: '21.T1/1' });
    expect(first.errors).toMatchObject([
      { file },
      { file, remedy: 'remove the file before the next start, which would restore deleted records' },
    ]);
  });

  test('whose file cannot be removed after a deletion is replaced as soon as the disk is writable, before the interval ends', async () => {
    const file = join(newFolder(), 'snapshot');
    const first = await writtenOnLostDisk(file);
    await expect.poll(() => first.waiting.size).toBe(1);
    await first.snapshot.recordDeletion({ key: '21.T1/0' });
    expect([first.written.length, first.waiting.size]).toEqual([1, 0]);
    rmdirSync(file);
    await expect.poll(() => first.written).toHaveLength(2);
    await expect.poll(() => first.waiting.size).toBe(1);
  });

  test('is written again if a deletion could not be logged while it removed older logs', async () => {
    const file = join(newFolder(), 'snapshot');
    writeFileSync(`${file}.deleted`, '{"key":"21.T1/1"}\n');
    const [removing, released] = [gate(), gate()];
    const actual = await vi.importActual<typeof fs.promises>('node:fs/promises');
    vi.mocked(unlink).mockImplementation(async (path) => {
      if (path === file) throw new Error('read-only');
      if (String(path).startsWith(`${file}.deleted.`)) {
        removing.open();
        await released.opened;
      }
      await actual.unlink(path);
    });
    onTestFinished(() => {
      vi.mocked(unlink).mockReset();
    });
    const first = trace(file, memoryOf(10));
    await first.snapshot.start();
    await removing.opened;
    mkdirSync(`${file}.deleted`);
    await first.snapshot.recordDeletion({ key: '21.T1/0' });
    released.open();
    const attempts = () => vi.mocked(rename).mock.calls.filter(([, to]) => to === file).length;
    await expect.poll(() => [attempts(), first.written.length]).toEqual([2, 1]);
  });

  describe('at shutdown', () => {
    test('is written once the snapshot in progress has ended, which would remove its file', async () => {
      const folder = newFolder();
      const file = join(folder, 'snapshot');
      const run = trace(file, memoryOf(10));
      const [inProgress, released] = [gate(), gate()];
      const actual = await vi.importActual<typeof fs.promises>('node:fs/promises');
      let opened = 0;
      vi.mocked(open).mockImplementation(async (path, ...flags) => {
        const handle = await actual.open(path, ...flags);
        if (path !== `${file}.tmp` || ++opened > 1) return handle;
        vi.spyOn(handle, 'sync').mockImplementation(() => {
          inProgress.open();
          return released.opened;
        });
        return handle;
      });
      onTestFinished(() => {
        vi.mocked(open).mockReset();
      });
      await run.snapshot.start();
      await inProgress.opened;
      const closed = run.snapshot.close();
      // A snapshot that does not wait has opened its file by now.
      for (let calls = 0; calls < 20; calls++) await stat(folder);
      expect(opened).toBe(1);
      released.open();
      await closed;
      expect([opened, run.written.length, run.errors]).toEqual([2, 1, []]);
    });

    test('is written without pausing', async () => {
      const run = trace(join(newFolder(), 'snapshot'), memoryOf(2000));
      await run.snapshot.start();
      await run.snapshot.close();
      expect(run.written).toMatchObject([{ records: 2000 }]);
      expect(run.trace).not.toContain('rest');
    });

    test('leaves the previous file and logs a warning when the shutdown timeout is too short', async () => {
      const folder = newFolder();
      const waitForCalls = async (count: number): Promise<void> => {
        for (let call = 0; call < count; call++) await stat(folder);
      };
      const file = join(folder, 'snapshot');
      const first = trace(file, memoryOf(10));
      await first.snapshot.start();
      await first.snapshot.close();
      const before = readFileSync(file);

      const openNow = fs.open.bind(fs);
      // As if a stream opened its file later than the file is removed; a file that is opened first does not come here.
      vi.spyOn(fs, 'open').mockImplementation((...given) => {
        void waitForCalls(2).then(() => {
          openNow(...given);
        });
      });
      onTestFinished(() => {
        vi.mocked(fs.open).mockRestore();
      });
      const second = trace(file, memoryOf(2000));
      await second.snapshot.start();
      const closing = second.snapshot.close();
      second.runOut();
      await closing;
      expect(second.errors).toEqual([{ file, reason: 'no time is left' }]);
      expect(second.written).toEqual([]);
      expect(readFileSync(file).equals(before)).toBe(true);
      await waitForCalls(4);
      expect(readdirSync(folder)).toEqual(['snapshot']);
    });
  });

  test('counts free and banned rows towards the size of a slice', () => {
    const memory = memoryOf(2000);
    const isBanned = (key: string) => key.startsWith('21.T1/1');
    memory.ban({ prefix: '21.T1/1', isSoft: false });
    for (let at = 200; at < 300; at++) memory.forget(`21.T1/${at}`);
    const [keys, sizes]: [string[], number[]] = [[], []];
    for (let at: number | undefined = 0; at !== undefined;) {
      const { entries, next } = memory.readFrom(at, 8192);
      sizes.push((next ?? 2000) - at);
      keys.push(...entries.map(({ key }) => key));
      at = next;
    }
    expect(keys).toHaveLength(2000 - 100 - 1111);
    expect(keys.filter(isBanned)).toEqual([]);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(8192 / ROW_BYTES + 1);
  });

  test('limits a slice by the expanded size of compressed records', () => {
    const memory = memoryOf(0);
    const values = toBytes(JSON.stringify(['https://'.repeat(1000)]));
    for (let at = 0; at < 100; at++) {
      const key = `21.T1/${at}`;
      memory.set(key, entryOf(key, { values }), memory.get(key).ticket);
    }
    const { entries } = memory.readFrom(0, 64 * 1024);
    expect(entries.length).toBeGreaterThan(1);
    expect(entries.length * values.length).toBeLessThanOrEqual(64 * 1024 + values.length);
  });
});
