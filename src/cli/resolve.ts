// The `resolve` command: prints a record and its cache entries, or resolves the handles on standard input.
import { tryDecode } from '../handle/bytes.js';
import type { CacheCopy } from '../host.js';
import { handleToPath, printableText } from '../handle/handle.js';
import { DEFAULT_TTL_SECONDS, type HandleValue } from '../handle/value.js';
import { type AdminOptions, TooLong, askAdmin, fetchText } from './client.js';
import type { TrustOptions } from './direct.js';
import { readHandleName, readHandleLines } from './handles.js';
import { EXIT, Failure, countText, print, printNote, tableLines } from './terminal.js';

interface ResolveCommandOptions extends AdminOptions, TrustOptions {
  proxy: string;
  direct?: string;
  native?: string;
  json?: boolean;
  plain?: boolean;
}

export async function resolveCommand(given: string, options: ResolveCommandOptions): Promise<void> {
  assertOptions(given, options);
  if (given === '-') {
    await resolveList(options);
    return;
  }
  const handle = readHandleName(given);
  const { text, note, failure } = await readHandleRecord(handle, options);
  const record = readRecordOf(tryDecode(JSON.parse, text));
  print(formatBody(text, record, options));
  printNote(note);
  if ((options.direct ?? options.native) === undefined) await printCacheEntries(handle, options);
  if (failure !== undefined) throw new Failure(failure);
  if (record === undefined) throw new Failure('the response is not a record');
}

function assertOptions(given: string, options: ResolveCommandOptions): void {
  const { direct, native, fingerprint, ca, insecure } = options;
  if (given === '-' && (direct ?? native) !== undefined)
    throw new Failure('--direct and --native resolve one handle.', EXIT.usage);
  if (direct === undefined && [fingerprint, ca, insecure].some((option) => option !== undefined))
    throw new Failure('--fingerprint, --ca and --insecure are for --direct.', EXIT.usage);
}

interface Resolved {
  text: string;
  note: string;
  /** Undefined if the handle was found. */
  failure: string | undefined;
}

async function readHandleRecord(handle: string, options: ResolveCommandOptions): Promise<Resolved> {
  const { native, direct, proxy } = options;
  // Imported on demand, because only `--native` needs the codec, and only `--direct` the upstream client.
  if (native !== undefined) return (await import('./native-client.js')).readNatively(native, handle);
  if (direct !== undefined) {
    const { status, text } = await (await import('./direct.js')).readDirectly(direct, handle, options);
    return toResolved(status, text);
  }
  const { response, text } = await fetchText(`${proxy}/api/handles/${handleToPath(handle)}`);
  return toResolved(response.status, text, response.headers.get('cache-status'));
}

const toResolved = (status: number, text: string, cacheStatus?: string | null): Resolved => ({
  text,
  note: `${status} · ${cacheStatus ?? 'no Cache-Status'}`,
  failure: status === 200 ? undefined : `status ${status}`,
});

/** Formats a record as a table on a terminal, and leaves the body unchanged in a pipe. */
function formatBody(
  text: string,
  record: RecordResponse | undefined,
  { json = false, plain = false }: ResolveCommandOptions,
): string {
  if (record !== undefined && plain) return record.values.map(valueLine).join('\n');
  if (record !== undefined && !json && process.stdout.isTTY) return recordTable(record);
  return text.trimEnd();
}

/** Tolerates an unreachable admin listener, because many users of `resolve` do not operate the proxy. */
async function printCacheEntries(handle: string, options: AdminOptions): Promise<void> {
  try {
    const path = `/cache?handle=${encodeURIComponent(handle)}`;
    const { copies } = (await askAdmin(options, { path, member: 'copies' })) as { copies: CacheCopy[] };
    printNote(copies.length === 0 ? 'not cached' : copies.map(cacheEntryLine).join('\n'));
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    printNote(`cache entries unknown: ${error.message}`);
  }
}

const cacheEntryLine = ({ tier, kind, state, hits, bytes, ...times }: CacheCopy): string =>
  [
    `${tier.padEnd(6)} ${kind}, ${state}`,
    `age ${times.ageSeconds} s`,
    `TTL left ${times.ttlSeconds} s (stale-if-error ${times.staleIfErrorSeconds} s)`,
    ...(hits === undefined ? [] : [`${hits} hits`]),
    `${bytes} bytes`,
  ].join(', ');

const BATCH_SIZE = 1000;

interface Element {
  handle: string;
  status: number;
  body: { message?: unknown };
}

async function resolveList(options: ResolveCommandOptions): Promise<void> {
  const counts = { resolved: 0, failed: 0 };
  const resolveAll = async (handles: string[]): Promise<void> => {
    const elements = await resolveBatch(handles, options).catch((error: unknown) => {
      if (error instanceof TooLong && handles.length > 1) return undefined;
      throw error;
    });
    // The proxy cuts a batch of long records.
    const isCut = elements?.some(({ status }) => status === 413) === true && handles.length > 1;
    if (elements === undefined || isCut) {
      const half = Math.ceil(handles.length / 2);
      await resolveAll(handles.slice(0, half));
      await resolveAll(handles.slice(half));
      return;
    }
    for (const element of elements) {
      const record = readRecordOf(element.body);
      printElement(element, record, options);
      counts[element.status === 200 && record !== undefined ? 'resolved' : 'failed']++;
    }
  };
  let batch: string[] = [];
  for await (const handle of readHandleLines('-')) {
    if (batch.push(handle) < BATCH_SIZE) continue;
    await resolveAll(batch);
    batch = [];
  }
  if (batch.length > 0) await resolveAll(batch);
  printNote(`${counts.resolved} resolved, ${counts.failed} failed`);
  if (counts.failed > 0) throw new Failure(`${countText(counts.failed, 'handle')} failed`);
}

async function resolveBatch(handles: string[], { proxy }: ResolveCommandOptions): Promise<Element[]> {
  const { response, text } = await fetchText(`${proxy}/api/resolve`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ handles }),
  });
  if (!response.ok) throw new Failure(`status ${response.status}: ${printableText(text.trim())}`);
  const elements: unknown = tryDecode(JSON.parse, text);
  if (Array.isArray(elements) && elements.length === handles.length && elements.every(isElement))
    return elements;
  throw new Failure('the response of the proxy is incomplete');
}

const isElement = (element: Partial<Element> | null): element is Element =>
  typeof element?.handle === 'string' && typeof element.status === 'number' && isObject(element.body);

const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null;

/** Prints a JSON line per handle in a pipe, a table on a terminal, or with `plain` a line per value. */
function printElement(
  element: Element,
  record: RecordResponse | undefined,
  { json, plain }: ResolveCommandOptions,
): void {
  if (json === true || !(process.stdout.isTTY || plain)) {
    print(JSON.stringify(element));
    return;
  }
  if (record === undefined) printNote(failureLine(element));
  else if (plain !== true) print(`${recordTable(record)}\n`);
  else for (const value of record.values) print(`${printableText(element.handle)}\t${valueLine(value)}`);
}

const failureLine = ({ handle, status, body: { message } }: Element): string =>
  printableText(`${handle}: ${status}${typeof message === 'string' ? ` ${message}` : ''}`);

interface RecordResponse {
  handle: string;
  values: HandleValue[];
}

/** Returns the record in a response of the record interface; undefined for errors and other JSON. */
function readRecordOf(response: unknown): RecordResponse | undefined {
  const { handle, values } = (response ?? {}) as { handle?: unknown; values?: unknown };
  if (typeof handle !== 'string' || !Array.isArray(values) || !values.every(isRecordValue)) return undefined;
  return { handle, values };
}

const isRecordValue = (value: Partial<HandleValue> | null): value is HandleValue =>
  typeof value?.index === 'number' && typeof value.type === 'string';

function textOfData({ data }: HandleValue): { text: string; isText: boolean } {
  if (typeof data === 'string') return { text: data, isText: true };
  const { format, value } = (data ?? {}) as { format?: unknown; value?: unknown };
  if (format === 'string' && typeof value === 'string') return { text: value, isText: true };
  return { text: JSON.stringify(value ?? data ?? null), isText: false };
}

const cellsOf = (value: HandleValue): string[] =>
  [String(value.index), value.type, String(value.ttl ?? DEFAULT_TTL_SECONDS), textOfData(value).text].map(
    printableText,
  );

const valueLine = (value: HandleValue): string => cellsOf(value).join('\t');

/** Shows text in full, so that it can be copied, and truncates structured data to the terminal width. */
function recordTable({ handle, values }: RecordResponse): string {
  const { columns } = process.stdout;
  const [head = '', ...lines] = tableLines(
    [['index', 'type', 'ttl', 'data'], ...values.map(cellsOf)],
    [0, 2],
  );
  const cut = values.map((value, at) => {
    const line = lines[at] ?? '';
    const isWhole = textOfData(value).isText || line.length <= columns;
    return isWhole ? line : `${line.slice(0, Math.max(0, columns - 1))}…`;
  });
  return [printableText(handle), head, ...cut].join('\n');
}
