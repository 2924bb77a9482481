// `import`: puts the records of an export into the memory of a running proxy.
import { readFileLines } from '../handle/file-lines.js';
import { type AdminOptions, callAdmin, reasonOf } from './client.js';
import { EXIT, Failure } from './failure.js';
import { listenForInterrupt } from './paced-requests.js';
import { countOf, startCounter } from './terminal.js';

export interface ImportOptions extends AdminOptions {
  skip: number;
}

/** The response to `POST /import`. */
interface ImportCounts {
  restored: number;
  kept: number;
  refused: number;
}

const BATCH_BYTES = 1024 ** 2;

export async function importRecords(file: string, { skip, admin }: ImportOptions): Promise<void> {
  const counts: ImportCounts = { restored: 0, kept: 0, refused: 0 };
  const counter = startCounter('record');
  const { signal, release } = listenForInterrupt();
  let done = 0;
  for await (const lines of batches(linesOf(file))) {
    const first = Math.min(Math.max(0, skip - done), lines.length);
    if (first < lines.length) await send(admin, lines.slice(first), counts, done + first);
    done += lines.length;
    counter.add(lines.length);
    if (signal.aborted) break;
  }
  counter.stop();
  release();
  const { restored, kept, refused } = counts;
  process.stdout.write(`${restored} imported, ${kept} not needed, ${refused} refused\n`);
  if (signal.aborted) throw new Failure(`interrupted; continue with --skip ${done}`);
  if (refused > 0) throw new Failure(`${countOf(refused, 'line')} refused: not a record of an export`);
  if (done === 0) throw new Failure(`${file} has no records`, EXIT.usage);
}

async function* linesOf(file: string): AsyncGenerator<string> {
  try {
    yield* readFileLines(file);
  } catch (error) {
    throw new Failure(`cannot read ${file}: ${reasonOf(error)}`, EXIT.usage);
  }
}

async function send(admin: string, lines: string[], counts: ImportCounts, done: number): Promise<void> {
  try {
    const response = await callAdmin({ admin }, '/import', { body: lines.join('\n') });
    const sent = (await response.json()) as ImportCounts;
    for (const name of ['restored', 'kept', 'refused'] as const) counts[name] += sent[name];
  } catch (error) {
    if (done === 0 || !(error instanceof Failure)) throw error;
    throw new Failure(`${error.message}; continue with --skip ${done}`, error.exitCode);
  }
}

async function* batches(lines: AsyncIterable<string>): AsyncGenerator<string[]> {
  let batch: string[] = [];
  let bytes = 0;
  for await (const line of lines) {
    batch.push(line);
    bytes += line.length;
    if (bytes < BATCH_BYTES) continue;
    yield batch;
    batch = [];
    bytes = 0;
  }
  if (batch.length > 0) yield batch;
}
