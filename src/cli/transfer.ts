// `export` writes the records of a prefix that the proxy holds, one a line; `import` puts them into the memory of another.
import { once } from 'node:events';
import { createWriteStream, existsSync, renameSync, rmSync, statSync } from 'node:fs';
import { Readable, type Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { constants, createGzip } from 'node:zlib';
import { readFileLines, streamLines } from '../handle/file-lines.js';
import { type AdminOptions, callAdmin, reasonOf } from './client.js';
import { listenForInterrupt } from './paced-requests.js';
import { EXIT, Failure, countOf, print, printNote, startCounter } from './terminal.js';

interface ExportOptions extends AdminOptions {
  prefix: string;
  output?: string;
}

/**
 * A file is complete or not there: it is written beside its place, and moved when the last record is in it. Records that
 * the proxy no longer has are taken from what interrupted runs have left.
 */
export async function exportRecords({ prefix, output, admin }: ExportOptions): Promise<void> {
  if (prefix === '' || prefix.includes('/'))
    throw new Failure('Give --prefix without a slash, such as 21.T1.', EXIT.usage);
  const response = await callAdmin({ admin }, `/export?prefix=${encodeURIComponent(prefix)}`);
  if (response.body === null) throw new Failure('the admin listener sent no records');
  const lines = linesIn(response.body);
  if (output === undefined) {
    await writeLines([lines], process.stdout);
    return;
  }
  try {
    await writeFile(lines, { output, base: `${output}.${encodeURIComponent(prefix)}` });
  } catch (error) {
    throw new Failure(`${output} is not complete (${reasonOf(error)}); run the same command to continue`);
  }
}

/** Converted when it is read: an earlier error would be unhandled. */
async function* linesIn(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const input = Readable.fromWeb(body);
  try {
    yield* streamLines(input);
  } finally {
    // When the output has failed, its connection would keep the command running.
    input.destroy();
  }
}

async function writeFile(
  lines: AsyncIterable<string>,
  { output, base }: { output: string; base: string },
): Promise<void> {
  const earlier = partialsOf(base);
  const partial = partialAt(base, earlier.length + 1);
  const target = createWriteStream(partial, { mode: 0o600 });
  const gzip = output.endsWith('.gz') ? createGzip({ level: constants.Z_BEST_SPEED }) : undefined;
  gzip?.pipe(target);
  const sink = gzip ?? target;
  const done = finished(target);
  // Nobody reads the compressed bytes then: what waits for room fails too.
  done.catch((failure: unknown) => gzip?.on('error', () => undefined).destroy(failure as Error));
  const recent = earlier.filter(isRecent).reverse();
  const write = async (): Promise<void> => {
    await once(target, 'open');
    await writeLines([lines, ...recent.map(completeLines)], sink);
  };
  await Promise.race([write(), done]).finally(async () => {
    sink.end();
    // What was received is in the file before the command ends.
    await done.catch(() => undefined);
  });
  await done;
  renameSync(partial, output);
  for (const file of earlier) rmSync(file);
}

const partialAt = (base: string, run: number): string => `${base}.${run}.partial`;

/** What interrupted runs have left, the first run first. */
function partialsOf(base: string): string[] {
  const files: string[] = [];
  while (existsSync(partialAt(base, files.length + 1))) files.push(partialAt(base, files.length + 1));
  return files;
}

/** A record of an older run may have been deleted since. */
const MAX_AGE_MS = 60 * 60 * 1000;

const isRecent = (file: string): boolean => Date.now() - statSync(file).mtimeMs < MAX_AGE_MS;

/** The lines of a file that is cut off somewhere, up to the cut. */
async function* completeLines(file: string): AsyncGenerator<string> {
  try {
    for await (const line of readFileLines(file)) {
      JSON.parse(line);
      yield line;
    }
  } catch {
    return;
  }
}

const HANDLE = /^\{"handle":("(?:[^"\\]|\\.)*")/;

/** Each handle once, from the first source that has it. */
async function writeLines(sources: readonly AsyncIterable<string>[], sink: Writable): Promise<void> {
  const [fresh] = sources;
  const seen = new Set<string>();
  let kept = 0;
  let chunk = '';
  const flush = (): void => {
    if (chunk !== '' && sink.writable) sink.write(chunk);
    chunk = '';
  };
  const counter = startCounter('record');
  const copy = async (from: AsyncIterable<string>): Promise<void> => {
    for await (const line of from) {
      // The file has failed, which the caller reports.
      if (!sink.writable) throw new Error('the output is closed');
      const handle = HANDLE.exec(line)?.[1];
      if (handle === undefined || seen.has(handle)) continue;
      seen.add(handle);
      counter.add(1);
      if (from !== fresh) kept++;
      // Lines that arrive together are one write: compressing each alone takes longer than everything else.
      if (chunk === '') setImmediate(flush);
      chunk += `${line}\n`;
      if (sink.writableNeedDrain) await once(sink, 'drain');
    }
  };
  try {
    for (const source of sources) await copy(source);
    const note = kept === 0 ? '' : `, ${kept} of them by an earlier run`;
    printNote(`${countOf(seen.size, 'record')} exported${note}`);
  } finally {
    counter.stop();
    flush();
  }
}

const COUNTS = ['restored', 'kept', 'refused'] as const;
type ImportCounts = Record<(typeof COUNTS)[number], number>;

const BATCH_BYTES = 1024 ** 2;

/** Puts the records of an export into the memory of a running proxy. */
export async function importRecords(file: string, options: AdminOptions & { skip: number }): Promise<void> {
  const { skip, ...admin } = options;
  const counts: ImportCounts = { restored: 0, kept: 0, refused: 0 };
  const counter = startCounter('record');
  const { signal, release } = listenForInterrupt();
  let done = 0;
  for await (const lines of batches(file)) {
    const first = Math.min(Math.max(0, skip - done), lines.length);
    if (first < lines.length) await send(admin, lines.slice(first), counts, done + first);
    done += lines.length;
    counter.add(lines.length);
    if (signal.aborted) break;
  }
  counter.stop();
  release();
  const { restored, kept, refused } = counts;
  print(`${restored} imported, ${kept} not needed, ${refused} refused`);
  if (signal.aborted) throw new Failure(`interrupted; continue with --skip ${done}`);
  if (refused > 0) throw new Failure(`${countOf(refused, 'line')} refused: not a record of an export`);
  if (done === 0) throw new Failure(`${file} has no records`, EXIT.usage);
}

async function send(admin: AdminOptions, lines: string[], counts: ImportCounts, done: number): Promise<void> {
  try {
    const response = await callAdmin(admin, '/import', { body: lines.join('\n') });
    const sent = (await response.json()) as ImportCounts;
    for (const name of COUNTS) counts[name] += sent[name];
  } catch (error) {
    if (done === 0 || !(error instanceof Failure)) throw error;
    throw new Failure(`${error.message}; continue with --skip ${done}`, error.exitCode);
  }
}

async function* batches(file: string): AsyncGenerator<string[]> {
  let batch: string[] = [];
  let bytes = 0;
  try {
    for await (const line of readFileLines(file)) {
      batch.push(line);
      bytes += line.length;
      if (bytes < BATCH_BYTES) continue;
      yield batch;
      batch = [];
      bytes = 0;
    }
  } catch (error) {
    throw new Failure(`cannot read ${file}: ${reasonOf(error)}`, EXIT.usage);
  }
  if (batch.length > 0) yield batch;
}
