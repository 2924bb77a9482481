// `resolve -`: resolves the handles of standard input, in batches.
import { fetchOrFail } from './client.js';
import { EXIT, Failure } from './failure.js';
import { readLines } from './handle-list.js';
import { type RecordResponse, readRecord, recordTable, valueLine } from './record-table.js';
import { countOf, printable } from './terminal.js';

export interface ListOptions {
  proxy: string;
  direct?: string;
  json?: boolean;
  plain?: boolean;
}

interface Element {
  handle: string;
  status: number;
  body: { message?: unknown };
}

/** `POST /api/resolve` takes no more. */
const BATCH_SIZE = 1000;

export async function resolveList(options: ListOptions): Promise<void> {
  if (options.direct !== undefined)
    throw new Failure('--direct resolves one handle: a Handle server has no batches.', EXIT.usage);
  const counts = { resolved: 0, failed: 0 };
  for await (const handles of slices(readLines('-'), BATCH_SIZE)) {
    for (const element of await resolveBatch(handles, options)) {
      print(element, options);
      if (isResolved(element)) counts.resolved++;
      else counts.failed++;
    }
  }
  process.stderr.write(`${counts.resolved} resolved, ${counts.failed} failed\n`);
  if (counts.failed > 0) throw new Failure(`${countOf(counts.failed, 'handle')} failed`);
}

async function* slices<T>(items: AsyncIterable<T>, size: number): AsyncGenerator<T[]> {
  let slice: T[] = [];
  for await (const item of items) {
    slice.push(item);
    if (slice.length < size) continue;
    yield slice;
    slice = [];
  }
  if (slice.length > 0) yield slice;
}

async function resolveBatch(handles: string[], { proxy }: ListOptions): Promise<Element[]> {
  const response = await fetchOrFail(`${proxy}/api/resolve`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ handles }),
  });
  const text = await response.text().catch(() => '');
  if (!response.ok) throw new Failure(`status ${response.status}: ${printable(text.trim())}`);
  const elements = readElements(text);
  if (elements?.length !== handles.length) throw new Failure('the response of the proxy is incomplete');
  return elements;
}

function readElements(text: string): Element[] | undefined {
  try {
    return JSON.parse(text) as Element[];
  } catch {
    return undefined;
  }
}

const isResolved = ({ status }: Element): boolean => status === 200;

/** A line of JSON per handle in a pipe, a table per record on a terminal; with `plain` a line per value. */
function print(element: Element, { json = false, plain = false }: ListOptions): void {
  const { isTTY, columns } = process.stdout;
  if (json || !(isTTY || plain)) {
    const line = JSON.stringify(element);
    process.stdout.write(`${isTTY ? printable(line) : line}\n`);
    return;
  }
  const record = readRecord(JSON.stringify(element.body));
  if (record === undefined) process.stderr.write(`${failureLine(element)}\n`);
  else process.stdout.write(plain ? linesOf(element, record) : `${recordTable(record, columns)}\n\n`);
}

/** As for one record, with the handle before each value. */
const linesOf = ({ handle }: Element, record: RecordResponse): string =>
  record.values.map((value) => `${printable(handle)}\t${valueLine(value)}\n`).join('');

const failureLine = ({ handle, status, body: { message } }: Element): string =>
  printable(`${handle}: ${status}${typeof message === 'string' ? ` ${message}` : ''}`);
