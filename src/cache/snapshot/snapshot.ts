// The snapshot of the memory tier: restored at the start, written in the background and at the end.
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Context } from '../../context.js';
import type { Deleted } from '../apply-message.js';
import type { Clock } from '../clock.js';
import type { KeyedEntry, MemoryStore } from '../memory/memory-store.js';
import { type Deletions, DeletionLog } from './deletions.js';
import { type SnapshotRefusal, type Take, readSnapshot } from './format.js';
import { type SnapshotSource, writeSnapshot } from './write.js';

/** Interval between slices of background work. */
const SLICE_EVERY_MS = 1.25;
/** Bytes read and encoded in a slice; requests that arrive meanwhile wait. */
const SLICE_BYTES = 128 * 1024;
/** Records restored in a slice. */
const SLICE_RECORDS = 200;
const READ_BYTES = 256 * 1024;
/** Maximum time for the last snapshot, after the last response. */
export const LAST_SNAPSHOT_MS = 15_000;

export interface SnapshotOptions {
  file: string;
  everyMs: number;
  /** Names the upstream: the snapshot of another one is rejected. */
  identity: string;
  memory: Pick<MemoryStore, 'moment' | 'readFrom'>;
  /** Keeps an unchecked entry; false when it is not usable, or was deleted since the ticket. */
  restore: (kept: KeyedEntry, ticket: number) => boolean;
}

export class Snapshot {
  readonly #options: SnapshotOptions;
  readonly #context: Context;
  readonly #deletions: DeletionLog;
  readonly #ending = new AbortController();
  #loading: Promise<void> | undefined;
  #writing: Promise<void> | undefined;
  #cancelTimer: () => void = () => undefined;
  /** A snapshot that was not read to its end is not replaced by the part that was read. */
  #isLoaded = false;
  #isFailing = false;

  constructor(options: SnapshotOptions, context: Context) {
    this.#options = options;
    this.#context = context;
    this.#deletions = new DeletionLog(options.file);
  }

  /** Restores the snapshot in the background, then writes one at each interval. */
  async start(): Promise<void> {
    this.#loading = this.#load();
    await this.#loading;
    if (this.#ending.signal.aborted) return;
    this.#isLoaded = true;
    this.#schedule();
  }

  /** Call it before the write is acknowledged. */
  recordDeletion(deleted: Deleted): void {
    try {
      this.#deletions.add(deleted);
    } catch (error) {
      this.#reportNotWritten(error);
      // A snapshot with a record from before a write is worse than none.
      void unlink(this.#options.file).catch(() => undefined);
    }
  }

  /** Writes the last snapshot without pauses, because no requests are served any more. */
  async close(): Promise<void> {
    this.#cancelTimer();
    const deadline = new AbortController();
    const cancel = this.#context.clock.after(LAST_SNAPSHOT_MS, () => {
      deadline.abort(new Error('no time is left'));
    });
    this.#ending.abort();
    await Promise.all([this.#loading, this.#writing]);
    if (this.#isLoaded) await this.#write({ pace: () => undefined, signal: deadline.signal });
    cancel();
  }

  #schedule(): void {
    const { clock } = this.#context;
    this.#cancelTimer = clock.after(this.#options.everyMs, () => {
      const { signal } = this.#ending;
      this.#writing = this.#write({ pace: createPace(clock), signal }).finally(() => {
        this.#writing = undefined;
        if (!signal.aborted) this.#schedule();
      });
    });
  }

  async #write({ pace, signal }: Pick<SnapshotSource, 'pace' | 'signal'>): Promise<void> {
    const { file, identity } = this.#options;
    const { clock, log, metrics } = this.#context;
    const startedAt = clock.monotonic();
    try {
      const forgetOlder = this.#deletions.begin();
      const written = await writeSnapshot(file, { identity, slices: this.#slices(), pace, signal });
      forgetOlder();
      this.#setFailing(false);
      metrics.setSnapshotWritten(clock.now());
      log.info({ file, ...written, ms: Math.round(clock.monotonic() - startedAt) }, 'snapshot written');
    } catch (error) {
      // The last snapshot follows.
      const isAbandoned = signal.aborted && signal === this.#ending.signal;
      if (!isAbandoned) this.#reportNotWritten(error);
    }
  }

  /** The previous snapshot stays. Failures in a row are logged once. */
  #reportNotWritten(error: unknown): void {
    if (!this.#isFailing)
      this.#context.log.warn({ file: this.#options.file, reason: reasonOf(error) }, 'snapshot not written');
    this.#setFailing(true);
  }

  #setFailing(isFailing: boolean): void {
    this.#isFailing = isFailing;
    this.#context.metrics.setSnapshotFailing(isFailing);
  }

  *#slices(): Generator<KeyedEntry[]> {
    const { memory } = this.#options;
    for (let at: number | undefined = 0; at !== undefined;) {
      const { entries, next } = memory.readFrom(at, SLICE_BYTES);
      yield entries.filter(({ entry }) => entry.deleteAt > this.#context.clock.now());
      at = next;
    }
  }

  async #load(): Promise<void> {
    const { file, memory } = this.#options;
    // In this order: memory knows later deletions, and the log holds earlier ones.
    const ticket = memory.moment();
    let handle: FileHandle | undefined;
    try {
      const deletions = this.#deletions.read();
      handle = await open(file, 'r');
      await this.#restore(handle, { deletions, ticket });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
        this.#context.log.warn({ file, reason: reasonOf(error) }, 'snapshot refused');
    } finally {
      await handle?.close();
    }
  }

  async #restore(
    handle: FileHandle,
    { deletions, ticket }: { deletions: Deletions; ticket: number },
  ): Promise<void> {
    const { file, identity, restore } = this.#options;
    const { clock, log, metrics } = this.#context;
    const startedAt = clock.monotonic();
    const loaded = { records: 0, restored: 0 };
    const refusals: SnapshotRefusal[] = [];
    const pace = createPace(clock);
    for await (const part of readSnapshot(takeFrom(handle), identity)) {
      if ('refused' in part) {
        refusals.push(part.refused);
        continue;
      }
      loaded.records += part.entries.length;
      for (let from = 0; from < part.entries.length; from += SLICE_RECORDS) {
        for (const kept of part.entries.slice(from, from + SLICE_RECORDS))
          if (!deletions.has(kept.key) && restore(kept, ticket)) loaded.restored++;
        await pace();
        if (this.#ending.signal.aborted) return;
      }
    }
    const reason = [...new Set(refusals)].join(', ');
    if (refusals.length > 0) log.warn({ file, reason, blocks: refusals.length }, 'snapshot refused');
    if (loaded.records === 0) return;
    metrics.countRestored('snapshot', loaded.restored);
    log.info({ file, ...loaded, ms: Math.round(clock.monotonic() - startedAt) }, 'snapshot loaded');
  }
}

export const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/**
 * Await the result after each slice. Slices keep to a schedule: after a late timer the next ones only yield to pending
 * requests.
 */
function createPace({ monotonic, after }: Pick<Clock, 'monotonic' | 'after'>): () => Promise<void> {
  let dueAt = monotonic();
  return async function pace() {
    dueAt += SLICE_EVERY_MS;
    const restMs = dueAt - monotonic();
    if (restMs > 0) await new Promise<void>((resolve) => void after(restMs, resolve));
    else await nextTurn();
  };
}

/** Reads ahead: a system call for each block would take longer than its processing. */
function takeFrom(handle: FileHandle): Take {
  let ahead = Buffer.alloc(0);
  return async function take(length) {
    while (ahead.length < length) {
      const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(READ_BYTES), 0, READ_BYTES);
      if (bytesRead === 0) break;
      ahead = Buffer.concat([ahead, buffer.subarray(0, bytesRead)]);
    }
    const taken = ahead.subarray(0, length);
    ahead = ahead.subarray(taken.length);
    return taken;
  };
}
