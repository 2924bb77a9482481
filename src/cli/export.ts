// `export`: writes the records of a prefix that the proxy holds, one a line.
import { type WriteStream, createWriteStream, renameSync, rmSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { Readable, type Transform, type Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { constants, createGzip } from 'node:zlib';
import { type AdminOptions, callAdmin } from './client.js';
import { EXIT, Failure } from './failure.js';
import { countOf, startCounter } from './terminal.js';

export interface ExportOptions extends AdminOptions {
  prefix: string;
  output?: string;
}

/** A file is complete or not there: it is written beside its place, and moved when the last record is in it. */
export async function exportRecords({ prefix, output, admin }: ExportOptions): Promise<void> {
  if (prefix === '' || prefix.includes('/'))
    throw new Failure('Give --prefix without a slash, such as 21.T1.', EXIT.usage);
  const response = await callAdmin({ admin }, `/export?prefix=${encodeURIComponent(prefix)}`);
  if (response.body === null) throw new Failure('the admin listener sent no records');
  const lines = createInterface({ input: Readable.fromWeb(response.body) });
  if (output === undefined) {
    await writeLines(lines, process.stdout);
    return;
  }
  const partial = `${output}.partial`;
  try {
    await writeFile(lines, partial, output.endsWith('.gz'));
    renameSync(partial, output);
  } catch (error) {
    rmSync(partial, { force: true });
    throw error instanceof Failure ? error : new Failure(`cannot write ${output}: ${String(error)}`);
  }
}

async function writeFile(lines: AsyncIterable<string>, file: string, isGzip: boolean): Promise<void> {
  const target: WriteStream = createWriteStream(file, { mode: 0o600 });
  const gzip: Transform | undefined = isGzip ? createGzip({ level: constants.Z_BEST_SPEED }) : undefined;
  gzip?.pipe(target);
  const sink = gzip ?? target;
  const done = finished(target);
  done.catch(() => undefined);
  await Promise.race([writeLines(lines, sink), done]);
  sink.end();
  await done;
}

const HANDLE = /^\{"handle":("(?:[^"\\]|\\.)*")/;

/** Each handle once: with several workers more than one may have it. */
async function writeLines(lines: AsyncIterable<string>, sink: Writable): Promise<void> {
  const seen = new Set<string>();
  const counter = startCounter('record');
  for await (const line of lines) {
    const handle = HANDLE.exec(line)?.[1];
    if (handle === undefined || seen.has(handle)) continue;
    seen.add(handle);
    counter.add(1);
    if (!sink.write(`${line}\n`)) await new Promise((resolve) => sink.once('drain', resolve));
  }
  counter.stop();
  process.stderr.write(`${countOf(seen.size, 'record')} exported\n`);
}
