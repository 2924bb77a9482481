// The snapshot of the memory tier: restored at the start, written in the background and at the end.
import { type FileHandle, open, unlink } from 'node:fs/promises';
import type { Deleted } from '../apply-message.js';
import type { Clock } from '../clock.js';
import type { KeyedEntry, MemoryStore } from '../memory/memory-store.js';
import { type Deletions, DeletionLog } from './deletions.js';
import { createPace } from './pace.js';
import { type Refusal, type Take, readSnapshot } from './read.js';
import { type SnapshotSource, type WrittenSnapshot, writeSnapshot } from './write.js';

/** Reading and encoding as much takes a quarter of a millisecond; requests that arrive meanwhile wait for that. */
const SLICE_BYTES = 128 * 1024;
/** Restoring as many takes half a millisecond. */
const SLICE_RECORDS = 200;
const READ_BYTES = 256 * 1024;

export interface SnapshotEvents {
  onWritten: (written: WrittenSnapshot & { ms: number }) => void;
  /** The previous snapshot stays. */
  onNotWritten: (error: unknown) => void;
  onLoaded: (loaded: LoadedSnapshot & { ms: number }) => void;
  /** Once for a file. `error`: it cannot be read at all. */
  onRefused: (refused: { reasons: Refusal[]; blocks: number } | { error: unknown }) => void;
}

export interface LoadedSnapshot {
  /** Entries in the snapshot. */
  records: number;
  /** Those that are in memory now. */
  restored: number;
}

export interface SnapshotDeps extends SnapshotEvents {
  file: string;
  everyMs: number;
  /** Maximum time for the last snapshot. */
  lastMs: number;
  /** Names the upstream. */
  identity: string;
  memory: Pick<MemoryStore, 'moment' | 'readFrom'>;
  /** Keeps an unchecked entry; false when it is not usable, or was deleted since the ticket. */
  restore: (kept: KeyedEntry, ticket: number) => boolean;
  clock: Pick<Clock, 'now' | 'monotonic' | 'after'>;
}

export class Snapshot {
  readonly #deps: SnapshotDeps;
  readonly #deletions: DeletionLog;
  readonly #ending = new AbortController();
  #loading: Promise<void> | undefined;
  #writing: Promise<void> | undefined;
  #cancelTimer: () => void = () => undefined;
  /** A snapshot that is not read to its end is not replaced by what was read of it. */
  #isLoaded = false;

  constructor(deps: SnapshotDeps) {
    this.#deps = deps;
    this.#deletions = new DeletionLog(deps.file);
  }

  /** Restores the snapshot in the background, then writes one again and again. */
  async start(): Promise<void> {
    this.#loading = this.#load();
    await this.#loading;
    if (this.#ending.signal.aborted) return;
    this.#isLoaded = true;
    this.#schedule();
  }

  /** To be called before the write is acknowledged. */
  recordDeletion(deleted: Deleted): void {
    try {
      this.#deletions.add(deleted);
    } catch (error) {
      this.#deps.onNotWritten(error);
      // A snapshot with a record from before a write is worse than none.
      void unlink(this.#deps.file).catch(() => undefined);
    }
  }

  /** Writes the last one, at full speed: nothing is served any more. */
  async close(): Promise<void> {
    this.#cancelTimer();
    const { clock, lastMs } = this.#deps;
    const deadline = new AbortController();
    const cancel = clock.after(lastMs, () => {
      deadline.abort(new Error('no time is left'));
    });
    this.#ending.abort();
    await Promise.all([this.#loading, this.#writing]);
    if (this.#isLoaded) await this.#write({ pace: () => undefined, signal: deadline.signal });
    cancel();
  }

  #schedule(): void {
    const { clock, everyMs } = this.#deps;
    this.#cancelTimer = clock.after(everyMs, () => {
      const { signal } = this.#ending;
      this.#writing = this.#write({ pace: createPace(clock), signal }).finally(() => {
        this.#writing = undefined;
        if (!signal.aborted) this.#schedule();
      });
    });
  }

  async #write({ pace, signal }: Pick<SnapshotSource, 'pace' | 'signal'>): Promise<void> {
    const { file, identity, clock, onWritten, onNotWritten } = this.#deps;
    const startedAt = clock.monotonic();
    try {
      const forgetOlder = this.#deletions.begin();
      const written = await writeSnapshot(file, { identity, slices: this.#slices(), pace, signal });
      forgetOlder();
      onWritten({ ...written, ms: Math.round(clock.monotonic() - startedAt) });
    } catch (error) {
      // The last one follows at once.
      if (!this.#isAbandoned(signal)) onNotWritten(error);
    }
  }

  #isAbandoned(signal: AbortSignal): boolean {
    return signal.aborted && signal === this.#ending.signal;
  }

  *#slices(): Generator<KeyedEntry[]> {
    const { memory, clock } = this.#deps;
    for (let at: number | undefined = 0; at !== undefined;) {
      const { entries, next } = memory.readFrom(at, SLICE_BYTES);
      yield entries.filter(({ entry }) => entry.deleteAt > clock.now());
      at = next;
    }
  }

  async #load(): Promise<void> {
    const { file, memory, onRefused } = this.#deps;
    // In this order: what is deleted from now on is known to memory, what was deleted before is in the log.
    const ticket = memory.moment();
    let handle: FileHandle | undefined;
    try {
      const deletions = this.#deletions.read();
      handle = await open(file, 'r');
      await this.#restore(handle, { deletions, ticket });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') onRefused({ error });
    } finally {
      await handle?.close();
    }
  }

  async #restore(
    handle: FileHandle,
    { deletions, ticket }: { deletions: Deletions; ticket: number },
  ): Promise<void> {
    const { identity, restore, clock, onLoaded, onRefused } = this.#deps;
    const startedAt = clock.monotonic();
    const loaded = { records: 0, restored: 0 };
    const refusals: Refusal[] = [];
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
    if (refusals.length > 0) onRefused({ reasons: [...new Set(refusals)], blocks: refusals.length });
    if (loaded.records > 0) onLoaded({ ...loaded, ms: Math.round(clock.monotonic() - startedAt) });
  }
}

/** Reads ahead: a system call for each block would take longer than what is done with it. */
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
