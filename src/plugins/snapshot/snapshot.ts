// The snapshot of the memory tier: restored at startup, written to a file in the background and at shutdown.
import { type FileHandle, open, rename, unlink } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { promisify } from 'node:util';
import { constants, deflateRaw } from 'node:zlib';
import type { Host } from '../../host.js';
import { type Clock, pause } from '../../clock.js';
import { type KeyedEntry, shiftTimes } from '../../cache/entry.js';
import type { Deleted } from '../../cache/store.js';
import { READ } from '../../config/given-files.js';
import { replaceFile } from '../../config/replace-file.js';
import { errorText } from '../../errors.js';
import { DeletionLog, type IsDeleted, isFileMissing } from './deletion-log.js';
import {
  ContentBuffer,
  encodeBlock,
  encodeHead,
  END,
  readSnapshot,
  type SnapshotRejection,
  type Take,
} from './format.js';
import { LAST_SNAPSHOT_MS, METRICS } from './plugin.js';

const SLICE_EVERY_MS = 1.25;
/** Bytes read and encoded per slice, during which requests wait. */
const SLICE_BYTES = 128 * 1024;
const READ_BYTES = 256 * 1024;

const NOT_WRITTEN = 'snapshot not written';
const NOT_REMOVED = 'snapshot not removed';

/** Time until the next attempt while the file has a deleted record that cannot be removed, as on a read-only disk (ms). */
const RETRY_MS = 10_000;

/** Returns the fields of the log line. A full disk or a missing right has a remedy, a lack of time at a stop none. */
const notWritten = (error: unknown) => ({
  reason: errorText(error),
  ...(error instanceof Error &&
    'syscall' in error && {
      remedy: 'make room in the folder of cache.snapshot.file, and let this user write there',
    }),
});

interface SnapshotPlan {
  file: string;
  everyMs: number;
  identity: string;
  /** Returns whether the entry was stored, which it is not if it was deleted after the ticket was issued. */
  restore: (kept: KeyedEntry, ticket: number) => boolean;
}

export class Snapshot {
  readonly #deletions: DeletionLog;
  readonly #ending = new AbortController();
  /** Aborted when a deletion could not be logged: the snapshot in progress may contain the record. */
  #unlogged = new AbortController();
  /** The last replacement of the file. It may overtake a removal that is requested after it. */
  #replaced: Promise<void> = Promise.resolve();
  #loading: Promise<void> | undefined;
  #writing: Promise<void> | undefined;
  #cancelTimer: () => void = () => undefined;
  /** Whether the previous snapshot was read to its end, so that it may be overwritten. */
  #isLoaded = false;
  /** Messages logged since the last snapshot was written. */
  readonly #reported = new Set<string>();
  /** Time of the last snapshot by the wall clock (ms); 0 before the first. */
  writtenAt = 0;

  constructor(
    private readonly options: SnapshotPlan,
    private readonly host: Host,
  ) {
    this.#deletions = new DeletionLog(options.file, {
      onLate: (error) => this.#warn(NOT_WRITTEN, notWritten(error)),
      onFailed: async (error) => {
        this.#reportNotWritten(error);
        // A snapshot that may restore a deleted record is worse than no snapshot.
        this.#unlogged.abort(error);
        await this.#remove();
      },
    });
  }

  /** Whether the last snapshot, or its log of deletions, could not be written. */
  get isFailing(): boolean {
    return this.#reported.size > 0 || this.#deletions.isLate;
  }

  /** Restores the snapshot in the background, then writes a new snapshot at each interval. */
  async start(): Promise<void> {
    this.#loading = this.#load();
    await this.#loading;
    if (!this.#ending.signal.aborted) this.#schedule();
  }

  /** Logs a deletion. The write may be acknowledged afterwards. */
  recordDeletion(deleted: Deleted): Promise<void> {
    return this.#deletions.add(deleted);
  }

  /** Writes the last snapshot without pauses, because requests are no longer served. */
  async close(): Promise<void> {
    this.#cancelTimer();
    const deadline = new AbortController();
    const cancel = this.host.clock.after(LAST_SNAPSHOT_MS, () => {
      deadline.abort(new Error('no time is left'));
    });
    this.#ending.abort();
    await Promise.all([this.#loading, this.#writing]);
    if (this.#isLoaded) await this.#write(() => undefined, deadline.signal);
    cancel();
  }

  #schedule(): void {
    const { clock } = this.host;
    this.#cancelTimer();
    this.#cancelTimer = clock.after(this.#reported.has(NOT_REMOVED) ? RETRY_MS : this.options.everyMs, () => {
      const { signal } = this.#ending;
      this.#writing = this.#write(createPace(clock), signal).finally(() => {
        this.#writing = undefined;
        if (!signal.aborted) this.#schedule();
      });
    });
  }

  async #write(pace: SnapshotSource['pace'], signal: AbortSignal): Promise<void> {
    const { file, identity } = this.options;
    const { clock, log } = this.host;
    const startedAt = clock.monotonic();
    this.#unlogged = new AbortController();
    const { signal: unlogged } = this.#unlogged;
    try {
      const forgetOlder = await this.#deletions.startLog();
      const readSlice: SnapshotSource['readSlice'] = (from) => this.#readSlice(from);
      const either = AbortSignal.any([signal, unlogged]);
      const written = { records: 0 };
      const blocks = blocksOf({ identity, readSlice, pace, signal: either }, written);
      const bytes = await replaceFile(file, blocks, (temporary) => {
        either.throwIfAborted();
        return (this.#replaced = rename(temporary, file));
      });
      either.throwIfAborted();
      await forgetOlder();
      unlogged.throwIfAborted();
      this.#reported.clear();
      this.writtenAt = clock.wall();
      const ms = Math.round(clock.monotonic() - startedAt);
      log.info({ file, ...written, bytes, ms }, 'snapshot written');
    } catch (error) {
      // A snapshot aborted by the shutdown needs no warning: the last snapshot follows.
      const isAbandoned = signal.aborted && signal === this.#ending.signal;
      if (!isAbandoned) this.#reportNotWritten(error);
    }
  }

  async #remove(): Promise<void> {
    await this.#replaced.catch(() => undefined);
    try {
      await unlink(this.options.file);
    } catch (error) {
      if (isFileMissing(error)) return;
      const remedy = 'remove the file before the next start, which would restore deleted records';
      const isFirst = !this.#reported.has(NOT_REMOVED);
      this.#report(NOT_REMOVED, { reason: errorText(error), remedy });
      const isWaiting = this.#isLoaded && this.#writing === undefined && !this.#ending.signal.aborted;
      if (isFirst && isWaiting) this.#schedule();
    }
  }

  #reportNotWritten(error: unknown): void {
    this.#report(NOT_WRITTEN, notWritten(error));
  }

  /** Logs the first of consecutive failures of a kind. */
  #report(msg: string, fields: object): void {
    if (!this.#reported.has(msg)) this.#warn(msg, fields);
    this.#reported.add(msg);
  }

  #warn(msg: string, fields: object): void {
    this.host.log.warn({ file: this.options.file, ...fields }, msg);
  }

  #readSlice(from: number): ReturnType<SnapshotSource['readSlice']> {
    const {
      clock,
      cache: { memory },
    } = this.host;
    const { entries, next } = memory.readFrom(from, SLICE_BYTES);
    const [now, wallTime] = [clock.now(), clock.wall()];
    const kept = entries
      .filter(({ entry }) => entry.deleteAt > now)
      .map(({ key, entry }) => ({ key, entry: shiftTimes(entry, wallTime - now) }));
    return { entries: kept, next };
  }

  async #load(): Promise<void> {
    const { file } = this.options;
    const { memory } = this.host.cache;
    // Before the log is read: memory knows later deletions, and the log contains earlier ones.
    const ticket = memory.moment();
    let handle: FileHandle | undefined;
    let isWhole = true;
    try {
      const isDeleted = await this.#deletions.read();
      handle = await open(file, READ);
      isWhole = await this.#restore(handle, { isDeleted, ticket });
    } catch (error) {
      if (!isFileMissing(error)) this.host.log.warn({ file, reason: errorText(error) }, 'snapshot rejected');
    } finally {
      await handle?.close();
    }
    this.#isLoaded = isWhole;
  }

  /** Resolves to false if the proxy stops meanwhile. */
  async #restore(
    handle: FileHandle,
    { isDeleted, ticket }: { isDeleted: IsDeleted; ticket: number },
  ): Promise<boolean> {
    const { file, identity, restore } = this.options;
    const { clock, log, metrics } = this.host;
    const startedAt = clock.monotonic();
    const loaded = { records: 0, restored: 0 };
    const rejections: SnapshotRejection[] = [];
    const pace = createPace(clock);
    for await (const part of readSnapshot(takeBytes(handle), identity)) {
      // Also for a rejected part: a start that fails must not replace the snapshot of another configuration.
      if (this.#ending.signal.aborted) return false;
      if ('rejected' in part) {
        rejections.push(part.rejected);
        continue;
      }
      loaded.records += part.entries.length;
      for (const kept of part.entries) if (!isDeleted(kept.key) && restore(kept, ticket)) loaded.restored++;
      await pace();
    }
    const reason = [...new Set(rejections)].join(', ');
    if (rejections.length > 0) log.warn({ file, reason, blocks: rejections.length }, 'snapshot rejected');
    if (loaded.records === 0) return true;
    metrics.counterOf(METRICS.restored)({ source: 'snapshot' }, loaded.restored);
    log.info({ file, ...loaded, ms: Math.round(clock.monotonic() - startedAt) }, 'snapshot loaded');
    return true;
  }
}

/** Returns a function to await after each slice; after a late timer, it only yields to requests. */
function createPace(clock: Clock): () => Promise<void> {
  const { monotonic } = clock;
  let dueAt = monotonic();
  return async function pace() {
    dueAt += SLICE_EVERY_MS;
    const restMs = dueAt - monotonic();
    await (restMs > 0 ? pause(clock, restMs) : nextTurn());
  };
}

/** Reads ahead, because a system call for each block would take longer than its processing. */
function takeBytes(handle: FileHandle): Take {
  let ahead = Buffer.alloc(0);
  return async function take(length) {
    const chunks = [ahead];
    for (let missing = length - ahead.length; missing > 0;) {
      const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(READ_BYTES), 0, READ_BYTES);
      if (bytesRead === 0) break;
      chunks.push(buffer.subarray(0, bytesRead));
      missing -= bytesRead;
    }
    if (chunks.length > 1) ahead = Buffer.concat(chunks);
    const taken = ahead.subarray(0, length);
    ahead = ahead.subarray(taken.length);
    return taken;
  };
}

/** Maximum number of blocks compressed concurrently, each on a separate thread. */
const MAX_COMPRESSING = 2;

interface SnapshotSource {
  identity: string;
  /** Returns the entries from a position of memory, and the next position; undefined at the end. */
  readSlice: (from: number) => { entries: readonly KeyedEntry[]; next: number | undefined };
  pace: () => Promise<void> | undefined;
  signal: AbortSignal;
}

/** Yields the file in blocks, and counts the records that are `written`. */
async function* blocksOf(
  { identity, readSlice, pace, signal }: SnapshotSource,
  written: { records: number },
): AsyncGenerator<Buffer> {
  const content = new ContentBuffer();
  const compressing: Promise<Buffer>[] = [];
  /** Compresses the current block on a different thread, and yields blocks in order until `left` remain. */
  async function* endBlock(left: number): AsyncGenerator<Buffer> {
    const block = compressFile(content.take());
    block.catch(() => undefined);
    compressing.push(block);
    for (const next of compressing.splice(0, compressing.length - left)) yield await next;
  }
  yield encodeHead(identity);
  for (let at: number | undefined = 0; at !== undefined;) {
    const { entries, next }: ReturnType<typeof readSlice> = readSlice(at);
    at = next;
    for (const kept of entries) {
      content.add(kept);
      // Checking before the call avoids a promise for each record.
      if (content.isFull) yield* endBlock(MAX_COMPRESSING);
    }
    written.records += entries.length;
    await pace();
    signal.throwIfAborted();
  }
  yield* endBlock(0);
  yield END;
}

const deflate = promisify(deflateRaw);

async function compressFile(content: Buffer): Promise<Buffer> {
  if (content.length === 0) return content;
  return encodeBlock(await deflate(content, { level: constants.Z_BEST_SPEED }), content.length);
}
