// The commands `export`, and `import` to the memory of a proxy or to a seed file.
import { once } from 'node:events';
import { createWriteStream, existsSync, renameSync, rmSync, statSync } from 'node:fs';
import { PassThrough, type Writable } from 'node:stream';
import { finished, pipeline } from 'node:stream/promises';
import { constants, createGzip } from 'node:zlib';
import { readFileLines } from '../handle/streams.js';
import { type AdminOptions, askAdmin, callExport, failureReason, streamExport } from './client.js';
import { type Conversion, readRecordLines } from './handle-net.js';
import { listenForInterrupt } from './paced-requests.js';
import {
  EXIT,
  Failure,
  countText,
  print,
  printNote,
  printableLines,
  replaceableFile,
  startCounter,
} from './terminal.js';

/** Flushed, because a network drive or a thin volume may find only then that it has no room: the rename would replace a good file. */
const OUTPUT = { mode: 0o600, flush: true };

interface ExportOptions extends AdminOptions {
  prefix: string;
  output?: string;
}

/** Writes a partial file, adds records of interrupted runs that the proxy has lost since, and renames it. */
export async function exportCommand({ prefix, admin, ...options }: ExportOptions): Promise<void> {
  const output = options.output && replaceableFile(options.output);
  const response = await callExport({ admin }, prefix);
  const lines = streamExport(response);
  try {
    const base = `${output}.${encodeURIComponent(prefix)}`;
    const exported = await (output === undefined
      ? writeLines(lines, [], process.stdout)
      : writeOutput(lines, { output, base, isPacked: options.output?.endsWith('.gz') === true }));
    printExported(exported, response.trailers);
  } catch (error) {
    if (output === undefined) throw error;
    throw new Failure(
      `${output} is not complete (${failureReason(error)}); run the same command to continue`,
    );
  } finally {
    // An open connection would keep the command running after an output failure.
    response.destroy();
  }
}

interface Exported {
  records: number;
  kept: number;
}

function printExported({ records, kept }: Exported, trailers: NodeJS.Dict<string>): void {
  const missing = Number(trailers['export-not-found'] ?? 0);
  const earlier = kept === 0 ? '' : `, ${kept} of them by an earlier run`;
  const skipped = missing === 0 ? '' : `; skipped: ${countText(missing, 'handle')} not found`;
  printNote(`${countText(records, 'record')} exported${earlier}${skipped}`);
}

async function writeOutput(
  lines: AsyncIterable<string>,
  { output, base, isPacked }: { output: string; base: string; isPacked: boolean },
): Promise<Exported> {
  const earlier = partialsOf(base);
  const partial = partialAt(base, earlier.length + 1);
  const target = createWriteStream(partial, OUTPUT);
  const gzip = isPacked ? createGzip({ level: constants.Z_BEST_SPEED }) : undefined;
  const sink = gzip ?? target;
  // The compressor fails with the file, so that writers waiting for `drain` fail too.
  const done = gzip === undefined ? finished(target) : pipeline(gzip, target);
  const recent = earlier.filter(isRecent).reverse();
  const write = async (): Promise<Exported> => {
    await once(target, 'open');
    return writeLines(lines, recent, sink);
  };
  const failed = done.then((): never => {
    throw new Error('the output is closed');
  });
  let exported: Exported;
  try {
    exported = await Promise.race([write(), failed]);
  } finally {
    sink.end();
    // Waits until all received lines are in the file, and throws why the file failed, if it did.
    await done;
  }
  renameSync(partial, output);
  for (const file of earlier) rmSync(file);
  return exported;
}

const partialAt = (base: string, run: number): string => `${base}.${run}.partial`;

/** Returns the partial files of interrupted runs, oldest first. */
function partialsOf(base: string): string[] {
  const files: string[] = [];
  while (existsSync(partialAt(base, files.length + 1))) files.push(partialAt(base, files.length + 1));
  return files;
}

/** Maximum age of a partial file; records in older files may have been deleted since. */
const MAX_AGE_MS = 60 * 60 * 1000;

/** A file from the future is of unknown age: the clock was set back. */
const isRecent = (file: string): boolean => Math.abs(Date.now() - statSync(file).mtimeMs) < MAX_AGE_MS;

const HANDLE = /^\{"handle":("(?:[^"\\]|\\.)*")/;

/** Writes each handle once: from `fresh`, then from the complete lines of the truncated `earlier` files. */
async function writeLines(
  fresh: AsyncIterable<string>,
  earlier: readonly string[],
  sink: Writable,
): Promise<Exported> {
  const seen = new Set<string>();
  let kept = 0;
  let chunk = '';
  const flush = (): void => {
    const isShown = sink === process.stdout && process.stdout.isTTY;
    if (chunk !== '' && sink.writable) sink.write(isShown ? printableLines(chunk) : chunk);
    chunk = '';
  };
  const counter = startCounter('record');
  const copy = async (from: AsyncIterable<string>): Promise<void> => {
    for await (const line of from) {
      // The caller reports the cause of the output failure.
      if (!sink.writable) throw new Error('the output is closed');
      if (from !== fresh) JSON.parse(line);
      const handle = HANDLE.exec(line)?.[1];
      if (handle === undefined || seen.has(handle)) continue;
      // A copy, because V8 keeps the whole line with a part of it.
      seen.add(Buffer.from(handle).toString());
      counter.add(1);
      if (from !== fresh) kept++;
      // Batches lines that arrive together, because compressing single lines would dominate the run time.
      if (chunk === '') setImmediate(flush);
      chunk += `${line}\n`;
      if (sink.writableNeedDrain) await once(sink, 'drain');
    }
  };
  try {
    await copy(fresh);
    for (const file of earlier)
      await copy(readFileLines(file)).catch((error: unknown) => {
        if (!sink.writable) throw error;
      });
    return { records: seen.size, kept };
  } finally {
    counter.stop();
    flush();
  }
}

const COUNTS = ['restored', 'kept', 'expired', 'full', 'rejected'] as const;
type ImportCounts = Record<(typeof COUNTS)[number], number>;

const BATCH_BYTES = 1024 ** 2;

interface ImportOptions extends AdminOptions {
  skip: number;
  output?: string;
}

const MAX_REJECTIONS = 20;

export async function importCommand(file: string, { skip, output, admin }: ImportOptions): Promise<void> {
  let rejected = 0;
  const conversion: Conversion = {
    hidden: 0,
    replaced: 0,
    reject(line, reason) {
      if (++rejected <= MAX_REJECTIONS) printNote(`line ${line}: ${reason}`);
    },
  };
  const lines = readRecordLines(file, conversion);
  const records =
    output === undefined ? await sendLines(lines, { skip, admin }) : await writeSeed(lines, output);
  const { replaced } = conversion;
  if (replaced > 0)
    printNote(`lines that are not UTF-8, or have U+FFFD for a letter: ${replaced}; save the file in UTF-8`);
  if (conversion.hidden > 0) printNote(`${countText(conversion.hidden, 'value')} left out: not public`);
  if (records === 0) throw new Failure(`${file} has no records`, EXIT.usage);
  if (rejected > 0) throw new Failure(`${countText(rejected, 'line')} of ${file} rejected`);
}

/** Writes the file, which appears when it is complete. Returns the number of records. */
async function writeSeed(lines: AsyncIterable<string>, file: string): Promise<number> {
  const output = replaceableFile(file);
  const counter = startCounter('record');
  let records = 0;
  async function* endLines(): AsyncGenerator<string> {
    for await (const line of lines) {
      records++;
      counter.add(1);
      yield `${line}\n`;
    }
  }
  const partial = `${output}.partial`;
  const pack = file.endsWith('.gz') ? createGzip() : new PassThrough();
  try {
    await pipeline(endLines(), pack, createWriteStream(partial, OUTPUT));
    if (records > 0) renameSync(partial, output);
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw new Failure(`cannot write ${output}: ${failureReason(error)}`);
  } finally {
    counter.stop();
    rmSync(partial, { force: true });
  }
  print(`${countText(records, 'record')} written to ${output}`);
  return records;
}

/** Returns the number of lines. */
async function sendLines(
  lines: AsyncIterable<string>,
  { skip, admin }: { skip: number; admin: string },
): Promise<number> {
  const counts: ImportCounts = { restored: 0, kept: 0, expired: 0, full: 0, rejected: 0 };
  const counter = startCounter('record');
  const { signal, release } = listenForInterrupt();
  let done = 0;
  let batch: string[] = [];
  let bytes = 0;
  const sendBatch = async (): Promise<void> => {
    const first = Math.min(Math.max(0, skip - done), batch.length);
    if (first < batch.length) await sendChunk({ admin, signal }, batch.slice(first), counts, done + first);
    done += batch.length;
    counter.add(batch.length);
    batch = [];
    bytes = 0;
  };
  try {
    for await (const line of lines) {
      batch.push(line);
      bytes += line.length;
      if (bytes < BATCH_BYTES) continue;
      await sendBatch();
      signal.throwIfAborted();
    }
    await sendBatch();
  } catch (error) {
    // A batch in flight is sent again by the command to continue.
    if (!signal.aborted) throw error;
  } finally {
    counter.stop();
    release();
  }
  const { rejected } = counts;
  print(importedText(counts));
  if (signal.aborted) throw new Failure(`interrupted; continue with --skip ${done}`);
  if (rejected > 0) throw new Failure(`${countText(rejected, 'line')} rejected: not a record of an export`);
  return done;
}

function importedText({ restored, kept, expired, full, rejected }: ImportCounts): string {
  const skipped = [
    [kept, 'already in memory'],
    [expired, 'too old'],
    [full, 'left out (memory full)'],
    [rejected, 'invalid'],
  ] as const;
  const reasons = skipped.flatMap(([count, reason]) => (count === 0 ? [] : [`${count} ${reason}`]));
  return `${restored} imported, ${kept + expired + full + rejected} skipped${reasons.length === 0 ? '' : `: ${reasons.join(', ')}`}`;
}

async function sendChunk(
  { admin, signal }: AdminOptions & { signal: AbortSignal },
  lines: string[],
  counts: ImportCounts,
  done: number,
): Promise<void> {
  try {
    const call = { path: '/import', member: 'restored', body: lines.join('\n'), signal };
    // Proxies before 0.4.0 omit some counts.
    const sent = (await askAdmin({ admin }, call)) as Partial<ImportCounts>;
    for (const name of COUNTS) counts[name] += sent[name] ?? 0;
  } catch (error) {
    if (done === 0 || !(error instanceof Failure)) throw error;
    throw new Failure(`${error.message}; continue with --skip ${done}`, error.exitCode);
  }
}
