// Converts the files of a Handle.Net server to lines of an export, without values that are not public.
import { tryDecode } from '../handle/bytes.js';
import { type StoredValue, valueToJson } from '../dev-server/value.js';
import { parseJson } from '../handle/json.js';
import { readFileLines } from '../handle/streams.js';
import {
  DEFAULT_TTL_SECONDS,
  type HandleValue,
  type ValueReference,
  assertValue,
  isPublic,
  isoSeconds,
} from '../handle/value.js';
import { encodeAdmin, encodeVlist } from '../handle/value-data.js';
import { failureReason } from './client.js';
import { EXIT, Failure } from './terminal.js';

export interface Conversion {
  /** Reports a line that is left out, without its text, which may be a password. */
  reject: (line: number, reason: string) => void;
  /** Number of values left out because they are not public. */
  hidden: number;
  /** Number of lines with U+FFFD, which replaces bytes of another encoding. */
  replaced: number;
}

interface SourceLine {
  text: string;
  number: number;
}

type SourceLines = AsyncIterable<SourceLine>;

/** Maximum length of a record or row, so that a quote or bracket that is never closed does not fill the memory. */
const MAX_RECORD_CHARS = 3 * 1024 ** 2;

const HANDLE_LINE = /^[^\s/][^/]*\/./;

const FORMATS =
  'give an export, the output of hdl-dblist with -v, a batch file, or the table handles as CSV with a header';

/** Yields the lines of an export, or converts a different format. @throws Failure for a file of another format */
export async function* readRecordLines(file: string, conversion: Conversion): AsyncGenerator<string> {
  try {
    yield* convertLines(file, conversion);
  } catch (error) {
    throw new Failure(`cannot read ${file}: ${failureReason(error)}`, EXIT.usage);
  }
}

async function* convertLines(file: string, conversion: Conversion): AsyncGenerator<string> {
  const first = await firstLine(file);
  if (first.startsWith('{') || first === '') yield* readFileLines(file);
  else if (operationOf(first) !== undefined) yield* convertBatch(file, conversion);
  else if (columnsOf(first) !== undefined) {
    const lines = numberLines(file, conversion);
    yield* convertTable(first.includes('\t') ? lines : joinRows(lines), conversion);
  } else if (HANDLE_LINE.test(first)) yield* convertList(numberLines(file, conversion), conversion);
  else throw new Error(`unknown format; ${FORMATS}`);
}

async function firstLine(file: string): Promise<string> {
  for await (const { text } of numberLines(file)) if (text.trim() !== '') return text;
  return '';
}

async function* numberLines(file: string, counts?: { replaced: number }): AsyncGenerator<SourceLine> {
  let number = 0;
  for await (const text of readFileLines(file)) {
    if (counts !== undefined && text.includes('\uFFFD')) counts.replaced++;
    yield { text, number: ++number };
  }
}

/** Formats a record as stale since now, because only its server knows whether it has changed. */
function formatSeedLine(handle: string, values: readonly HandleValue[], conversion: Conversion): string {
  const shown = values.filter(isPublic);
  conversion.hidden += values.length - shown.length;
  const now = new Date().toISOString();
  return JSON.stringify({ handle, requestedAt: now, staleAt: now, deleteAt: now, values: shown });
}

// The output of `hdl-dblist SERVER -v`: a line with the handle, then its values as an indented JSON array.

async function* convertList(lines: SourceLines, conversion: Conversion): AsyncGenerator<string> {
  const list = new DatabaseList(conversion);
  for await (const line of lines) {
    const record = list.add(line);
    if (record !== undefined) yield record;
  }
  list.end();
}

class DatabaseList {
  #handle: SourceLine | undefined;
  #json = '';

  constructor(readonly conversion: Conversion) {}

  add(line: SourceLine): string | undefined {
    if (this.#handle !== undefined && (this.#json !== '' || line.text.startsWith('[')))
      return this.#addJson(this.#handle, line.text);
    if (HANDLE_LINE.test(line.text)) {
      this.#reject(NO_VALUES);
      this.#handle = line;
    } else if (line.text !== '') this.conversion.reject(line.number, 'neither a handle nor its values');
    return undefined;
  }

  end(): void {
    this.#reject(this.#json === '' ? NO_VALUES : 'the file ends in the values of this handle');
  }

  #addJson({ text: handle }: SourceLine, text: string): string | undefined {
    // A record that is too long fails to parse.
    if (this.#json.length < MAX_RECORD_CHARS) this.#json += `${text}\n`;
    if (text !== ']' && text !== '[]') return undefined;
    const values = tryDecode(parseValues, this.#json);
    this.#json = '';
    if (values === undefined) this.#reject('the values of this handle are not JSON of a Handle server');
    this.#handle = undefined;
    return values && formatSeedLine(handle, values, this.conversion);
  }

  #reject(reason: string): void {
    if (this.#handle !== undefined) this.conversion.reject(this.#handle.number, reason);
    this.#handle = undefined;
  }
}

const NO_VALUES = 'no values after this handle; hdl-dblist prints them with -v';

const parseValues = (json: string): HandleValue[] => (parseJson(json) as unknown[]).map(assertValue);

// Batch files (Handle.Net technical manual, section 4): operations, each with value lines up to an empty line.

const OPERATION = /^(CREATE|DELETE|ADD|REMOVE|MODIFY|HOME|UNHOME|AUTHENTICATE|SESSIONSETUP)(?:\s(.*))?$/is;

function operationOf(text: string): { operation: string; rest: string } | undefined {
  const [, operation, rest = ''] = OPERATION.exec(text.trim()) ?? [];
  return operation === undefined ? undefined : { operation: operation.toUpperCase(), rest: rest.trim() };
}

interface BatchRecord {
  handle: string;
  values: Map<number, StoredValue>;
}

/** Keeps only the records in memory that other operations of the file change. */
async function* convertBatch(file: string, conversion: Conversion): AsyncGenerator<string> {
  const batch = new BatchFile(await changedHandles(file), conversion);
  for await (const line of numberLines(file, conversion)) {
    const finished = batch.add(line);
    if (finished !== undefined) yield formatBatch(finished, conversion);
  }
  for (const record of batch.rest()) yield formatBatch(record, conversion);
}

const formatBatch = ({ handle, values }: BatchRecord, conversion: Conversion): string =>
  formatSeedLine(handle, [...values.values()].map(valueToJson), conversion);

async function changedHandles(file: string): Promise<Set<string>> {
  const changed = new Set<string>();
  for await (const { text } of numberLines(file)) {
    const { operation = '', rest = '' } = operationOf(text) ?? {};
    if (/^(?:ADD|MODIFY|DELETE)$/.test(operation)) changed.add(rest.toUpperCase());
    if (operation === 'REMOVE') changed.add(removedFrom(rest).handle.toUpperCase());
  }
  return changed;
}

/** Splits `5,6:12345/hdl2`. */
function removedFrom(rest: string): { indexes: number[]; handle: string } {
  const [, indexes = '', handle = ''] = /^([\d, ]+):(.*)$/s.exec(rest) ?? [];
  return { indexes: indexes.split(',').map(Number), handle: handle.trim() };
}

class BatchFile {
  readonly #held = new Map<string, BatchRecord>();
  /** The record to which value lines belong. */
  #open: BatchRecord | undefined;
  #skipsValues = false;

  constructor(
    readonly changed: ReadonlySet<string>,
    readonly conversion: Conversion,
  ) {}

  add(line: SourceLine): BatchRecord | undefined {
    const operation = operationOf(line.text);
    if (operation === undefined && line.text.trim() !== '') {
      if (!this.#skipsValues) this.#addValue(line);
      return undefined;
    }
    const complete = this.#takeOpen();
    this.#skipsValues = false;
    if (operation !== undefined) this.#begin(operation, line.number);
    return complete;
  }

  rest(): BatchRecord[] {
    const last = this.#takeOpen();
    return [...(last === undefined ? [] : [last]), ...this.#held.values()];
  }

  #takeOpen(): BatchRecord | undefined {
    const open = this.#open;
    this.#open = undefined;
    return open === undefined || this.changed.has(open.handle.toUpperCase()) ? undefined : open;
  }

  #begin({ operation, rest }: { operation: string; rest: string }, number: number): void {
    const { indexes, handle } = operation === 'REMOVE' ? removedFrom(rest) : { indexes: [], handle: rest };
    // Credentials, sessions and the servers of prefixes are no records.
    if (/^(?:HOME|UNHOME|AUTHENTICATE|SESSIONSETUP)$/.test(operation)) this.#skipsValues = true;
    else if (!HANDLE_LINE.test(handle)) this.#skip(number, `${operation} without a handle`);
    else if (operation === 'CREATE') this.#create(handle, number);
    else this.#change(operation, handle, { indexes, number });
  }

  #create(handle: string, number: number): void {
    const key = handle.toUpperCase();
    // A Handle server rejects a second CREATE.
    if (this.#held.has(key)) {
      this.#skip(number, 'CREATE of a handle that exists');
      return;
    }
    this.#open = { handle, values: new Map() };
    if (this.changed.has(key)) this.#held.set(key, this.#open);
  }

  #change(operation: string, handle: string, at: { indexes: number[]; number: number }): void {
    const key = handle.toUpperCase();
    const record = this.#held.get(key);
    if (record === undefined)
      this.#skip(at.number, `${operation} of a handle that the file has not created above`);
    else if (operation === 'DELETE') this.#held.delete(key);
    else if (operation === 'REMOVE') for (const index of at.indexes) record.values.delete(index);
    else this.#open = record;
  }

  #skip(number: number, reason: string): void {
    this.conversion.reject(number, reason);
    this.#skipsValues = true;
  }

  #addValue({ text, number }: SourceLine): void {
    const value = parseBatchValue(text.trim());
    if (this.#open === undefined) this.conversion.reject(number, 'not an operation');
    else if (typeof value === 'string') this.conversion.reject(number, value);
    else this.#open.values.set(value.index, value);
  }
}

const VALUE_LINE = /^(\d{1,10}) +(\S+) +(\d{1,10}) +([01]{4})\S* +(\w+)(?: (.*))?$/s;

/** Parses `index type ttl permissions kind data`; returns the reason if it is not a value. */
function parseBatchValue(text: string): StoredValue | string {
  const [, index, type = '', ttl, permissions = '', kind = '', given = ''] = VALUE_LINE.exec(text) ?? [];
  if (index === undefined) return 'not a value line (index, type, ttl, permissions, kind, data)';
  if (/^FILE$/i.test(kind)) return 'the data of this value is in another file';
  const data = encodeBatchData(kind.toUpperCase(), given.trim());
  if (data === undefined) return 'data that is not UTF8, ADMIN or LIST';
  return {
    ...{ index: Number(index), type, data, permissions, ttl: Number(ttl) },
    ...{ references: [], timestampSeconds: 0 },
  };
}

function encodeBatchData(kind: string, given: string): Buffer | undefined {
  if (kind === 'UTF8') return Buffer.from(given);
  const [, index, digits, handle = ''] = /^(\d{1,10}):([01]{12}):(.+)$/.exec(given) ?? [];
  if (kind === 'ADMIN' && digits !== undefined) {
    // Batch files list the lowest bit first.
    const permissions = parseInt(Array.from(digits, (_, at) => digits[11 - at]).join(''), 2);
    return encodeAdmin({ handle, index: Number(index), permissions, legacy: false });
  }
  return kind === 'LIST' ? encodeVlist(readReferenceList(given.split(';'))) : undefined;
}

/** Reads `index:handle` references; omits others. */
const readReferenceList = (texts: readonly string[]): ValueReference[] =>
  texts.flatMap((text) => {
    const [, index, handle = ''] = /^(\d{1,10}):(.+)$/s.exec(text.trim()) ?? [];
    return index === undefined ? [] : [{ handle, index: Number(index) }];
  });

// The table `handles` of a Handle.Net server in an SQL database, as CSV or separated by tabs, with a header.

const REQUIRED = ['handle', 'idx', 'type', 'data', 'pub_read'];

type Row = Record<string, string>;

/** Returns the lower-case column names; undefined if the line is not a header of the table. */
function columnsOf(header: string): { separator: string; names: string[] } | undefined {
  const separator = header.includes('\t') ? '\t' : ',';
  const names = splitRow(header, separator).map((name) => name.trim().toLowerCase());
  return names.includes('handle') && names.includes('idx') ? { separator, names } : undefined;
}

async function* convertTable(lines: SourceLines, conversion: Conversion): AsyncGenerator<string> {
  let handle: string | undefined;
  let values: HandleValue[] = [];
  for await (const { row, number } of readRows(lines, conversion)) {
    const { name, value } = readRow(row);
    if (typeof value === 'string') {
      conversion.reject(number, value);
      continue;
    }
    if (name !== handle) {
      if (handle !== undefined) yield formatSeedLine(handle, values, conversion);
      if (handle !== undefined && Buffer.compare(Buffer.from(name), Buffer.from(handle)) < 0)
        throw new Error(`line ${number} is not in order; export the rows ordered by the bytes of handle`);
      handle = name;
      values = [];
    }
    values.push(value);
  }
  if (handle !== undefined) yield formatSeedLine(handle, values, conversion);
}

/** Yields rows by column. @throws Error for missing columns */
async function* readRows(
  lines: SourceLines,
  { reject }: Conversion,
): AsyncGenerator<{ row: Row; number: number }> {
  let columns: ReturnType<typeof columnsOf>;
  for await (const { text, number } of lines) {
    if (text.trim() === '') continue;
    if (columns === undefined) {
      columns = columnsOf(text);
      const missing = REQUIRED.filter((name) => columns?.names.includes(name) !== true);
      if (missing.length > 0) throw new Error(`the table has no column ${missing.join(', ')}`);
      continue;
    }
    const { names, separator } = columns;
    const cells = splitRow(text, separator);
    if (cells.length === names.length)
      yield { row: Object.fromEntries(names.map((name, at) => [name, cells[at] ?? ''])), number };
    else reject(number, `not a row with ${names.length} cells`);
  }
}

/** Joins the lines of a row with line breaks in quotes. @throws Error for a quote that is not closed */
async function* joinRows(lines: SourceLines): SourceLines {
  let row: SourceLine | undefined;
  let quotes = 0;
  for await (const { text, number } of lines) {
    row = row === undefined ? { text, number } : { text: `${row.text}\n${text}`, number: row.number };
    quotes += text.split('"').length - 1;
    if (quotes % 2 === 0) {
      yield row;
      row = undefined;
    } else if (row.text.length > MAX_RECORD_CHARS) break;
  }
  if (row !== undefined) throw new Error(`line ${row.number}: a quote is not closed`);
}

const ESCAPED: Record<string, string> = { t: '\t', n: '\n', r: '\r', '0': '\0' };

/** Splits CSV (RFC 4180), or columns between tabs as the clients of MySQL and PostgreSQL write them. */
function splitRow(text: string, separator: string): string[] {
  if (separator === '\t') return text.split('\t').map((cell) => unescapeCell(cell, /\\([\\tnr0])/g));
  const cells: string[] = [];
  for (let at = 0; at <= text.length;) {
    const end = endOfCell(text, at);
    const cell = text.slice(at, end);
    cells.push(cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell);
    at = end + 1;
  }
  return cells;
}

/** Returns the position of the comma after the cell, or of the end. */
function endOfCell(text: string, start: number): number {
  let at = start;
  if (text[start] === '"') {
    at = text.indexOf('"', start + 1);
    // Two quotes are one in the text.
    while (at !== -1 && text[at + 1] === '"') at = text.indexOf('"', at + 2);
  }
  const comma = at === -1 ? -1 : text.indexOf(',', at);
  return comma === -1 ? text.length : comma;
}

const unescapeCell = (text: string, pattern: RegExp): string =>
  text.replace(pattern, (_, char: string) => ESCAPED[char] ?? char);

/** Returns a handle and one of its values, or the reason if it is not a value. */
function readRow(row: Row): { name: string; value: HandleValue | string } {
  const name = decodeHexCell(row['handle']).toString();
  return { name, value: HANDLE_LINE.test(name) ? readRowValue(row) : 'not a handle' };
}

function readRowValue(row: Row): HandleValue | string {
  const isAllowed = ['admin_read', 'admin_write', 'pub_read', 'pub_write'].map((name) =>
    readBoolean(row[name]),
  );
  if (isAllowed[2] === undefined) return 'pub_read is neither true nor false';
  const [index, ttl] = [row['idx'], row['ttl'] ?? DEFAULT_TTL_SECONDS].map(Number) as [number, number];
  if (!isInt32(index) || !isInt32(ttl)) return 'idx or ttl is not a number of 32 bits';
  const timestampSeconds = Number(row['timestamp']);
  return valueToJson({
    index,
    type: decodeHexCell(row['type']).toString(),
    data: decodeHexCell(row['data']),
    permissions: isAllowed.map((is, at) => ((is ?? '1110'[at] === '1') ? '1' : '0')).join(''),
    // Type 1 is absolute, in seconds since 1970.
    ttl: row['ttl_type'] === '1' ? isoSeconds(ttl) : ttl,
    references: readReferenceCell(row['refs']),
    timestampSeconds: isInt32(timestampSeconds) ? timestampSeconds : 0,
  });
}

/** Whether a Handle server can store the number or time; a much larger time is no date. */
const isInt32 = (number: number): boolean => number === (number | 0);

function readBoolean(cell = ''): boolean | undefined {
  if (/^(?:1|t|true)$/i.test(cell)) return true;
  return /^(?:0|f|false)$/i.test(cell) ? false : undefined;
}

const isNull = (cell: string): boolean => cell === 'NULL' || cell === '\\N';

/** Decodes hexadecimal bytes as of PostgreSQL (`\x`) and MySQL (`0x`); other cells are text. */
function decodeHexCell(cell = ''): Buffer {
  const [, digits] = /^(?:\\x|0x)([0-9a-f]*)$/i.exec(cell) ?? [];
  return digits === undefined ? Buffer.from(isNull(cell) ? '' : cell) : Buffer.from(digits, 'hex');
}

/** Reads references as the storage of a Handle server writes them: separated by tabs, with two escapes. */
const readReferenceCell = (cell = ''): ValueReference[] =>
  readReferenceList(
    decodeHexCell(cell)
      .toString()
      .replace(/%([0-9a-f]{4})/gi, (_, code: string) => String.fromCharCode(parseInt(code, 16)))
      .split('\t'),
  ).map(({ handle, index }) => ({ handle: unescapeCell(handle, /\\(.)/gs), index }));
