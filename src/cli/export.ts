// `export`: writes the records of a prefix that the proxy holds, one a line.
import { once } from 'node:events';
import { type WriteStream, createWriteStream, existsSync, renameSync } from 'node:fs';
import { Readable, type Transform, type Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { constants, createGzip } from 'node:zlib';
import { readFileLines, streamLines } from '../handle/file-lines.js';
import { type AdminOptions, callAdmin, reasonOf } from './client.js';
import { EXIT, Failure } from './failure.js';
import { countOf, startCounter } from './terminal.js';

export interface ExportOptions extends AdminOptions {
  prefix: string;
  output?: string;
}

/**
 * A file is complete or not there: it is written beside its place, and moved when the last record is in it. What an
 * interrupted run has left is kept.
 */
export async function exportRecords({ prefix, output, admin }: ExportOptions): Promise<void> {
  if (prefix === '' || prefix.includes('/'))
    throw new Failure('Give --prefix without a slash, such as 21.T1.', EXIT.usage);
  const response = await callAdmin({ admin }, `/export?prefix=${encodeURIComponent(prefix)}`);
  if (response.body === null) throw new Failure('the admin listener sent no records');
  const lines = linesIn(response.body);
  if (output === undefined) {
    await writeLines(lines, { sink: process.stdout });
    return;
  }
  try {
    await writeFile(lines, { output, partial: `${output}.${encodeURIComponent(prefix)}.partial` });
  } catch (error) {
    throw new Failure(`${output} is not complete (${reasonOf(error)}); run the same command to continue`);
  }
}

/** The body becomes a stream when it is read: an error before would be nobody's. */
async function* linesIn(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  yield* streamLines(Readable.fromWeb(body));
}

async function writeFile(
  lines: AsyncIterable<string>,
  { output, partial }: { output: string; partial: string },
): Promise<void> {
  const isGzip = output.endsWith('.gz');
  const started = `${partial}.new`;
  const target: WriteStream = createWriteStream(started, { mode: 0o600 });
  const gzip: Transform | undefined = isGzip ? createGzip({ level: constants.Z_BEST_SPEED }) : undefined;
  gzip?.pipe(target);
  const sink = gzip ?? target;
  const done = finished(target);
  done.catch(() => undefined);
  const write = async (): Promise<void> => {
    await once(target, 'open');
    const before = existsSync(partial) ? completeLines(partial) : noLines();
    // From here on an interrupted run has left at least as much as the one before it.
    const onCopied = (): void => {
      renameSync(started, partial);
    };
    await writeLines(lines, { sink, before, onCopied });
  };
  await Promise.race([write(), done]).finally(() => sink.end());
  await done;
  renameSync(partial, output);
}

async function* noLines(): AsyncGenerator<string> {
  // An export that begins anew.
}

/** The lines of a file that is cut off somewhere. */
async function* completeLines(file: string): AsyncGenerator<string> {
  try {
    for await (const line of readFileLines(file)) if (isComplete(line)) yield line;
  } catch {
    // What is before the cut is read.
  }
}

function isComplete(line: string): boolean {
  try {
    return JSON.parse(line) !== null;
  } catch {
    return false;
  }
}

const HANDLE = /^\{"handle":("(?:[^"\\]|\\.)*")/;

interface Target {
  sink: Writable;
  /** What an earlier run has written. */
  before?: AsyncIterable<string>;
  onCopied?: () => void;
}

/** Each handle once: with several workers more than one may have it. */
async function writeLines(
  lines: AsyncIterable<string>,
  { sink, before = noLines(), onCopied = () => undefined }: Target,
): Promise<void> {
  const seen = new Set<string>();
  const counter = startCounter('record');
  const copy = async (from: AsyncIterable<string>): Promise<void> => {
    for await (const line of from) {
      const handle = HANDLE.exec(line)?.[1];
      if (handle === undefined || seen.has(handle)) continue;
      seen.add(handle);
      counter.add(1);
      if (!sink.write(`${line}\n`)) await new Promise((resolve) => sink.once('drain', resolve));
    }
  };
  try {
    await copy(before);
    const kept = seen.size;
    onCopied();
    await copy(lines);
    const note = kept === 0 ? '' : `, ${kept} of them by an earlier run`;
    process.stderr.write(`${countOf(seen.size, 'record')} exported${note}\n`);
  } finally {
    counter.stop();
  }
}
