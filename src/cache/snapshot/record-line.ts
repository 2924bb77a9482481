// A record as one line of JSON, with its times: the form of exports, imports and seeds. Text in, entry out.
import { toBytes, toText } from '../../handle/bytes.js';
import { type HandleRef, MAX_HANDLE_BYTES } from '../../handle/handle.js';
import { type HandleValue, isPublic } from '../../handle/value.js';
import type { KeyedEntry } from '../memory/memory-store.js';

const isoTime = (ms: number): string => new Date(ms).toISOString();

/** Undefined for a not-found answer: exports contain only records. */
export function formatRecordLine({ key, entry }: KeyedEntry): string | undefined {
  if (entry.kind === 'not-found') return undefined;
  const { requestedAt, staleAt, deleteAt } = entry;
  const times = { requestedAt: isoTime(requestedAt), staleAt: isoTime(staleAt), deleteAt: isoTime(deleteAt) };
  const head = JSON.stringify({ handle: key, ...times });
  // The values are JSON already.
  return `${head.slice(0, -1)},"values":${entry.kind === 'found' ? toText(entry.values) : '[]'}}\n`;
}

/** Undefined for a line that is not a record. Values that are not public are dropped: the file is untrusted. */
export function parseRecordLine(line: string, refOf: (text: string) => HandleRef): KeyedEntry | undefined {
  const { handle, values, ...times } = parseObject(line);
  if (typeof handle !== 'string' || !isHandle(handle)) return undefined;
  const [requestedAt, staleAt, deleteAt] = ['requestedAt', 'staleAt', 'deleteAt'].map((name) =>
    typeof times[name] === 'string' ? Date.parse(times[name]) : NaN,
  ) as [number, number, number];
  if (!Array.isArray(values) || !values.every(isValue)) return undefined;
  if ([requestedAt, staleAt, deleteAt].some(Number.isNaN)) return undefined;
  const shown = values.filter(isPublic);
  const isEmpty = shown.length === 0;
  return {
    key: refOf(handle).key,
    entry: {
      kind: isEmpty ? 'empty' : 'found',
      values: toBytes(isEmpty ? '' : JSON.stringify(shown)),
      message: '',
      ...{ requestedAt, staleAt, deleteAt },
    },
  };
}

function parseObject(line: string): Record<string, unknown> {
  try {
    const parsed: unknown = JSON.parse(line);
    return typeof parsed === 'object' && parsed !== null ? (parsed as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

const isHandle = (text: string): boolean =>
  text !== '' && !text.includes('\0') && Buffer.byteLength(text) <= MAX_HANDLE_BYTES;

function isValue(value: unknown): value is HandleValue {
  const { index, type, data } = (value ?? {}) as Partial<HandleValue>;
  return Number.isInteger(index) && typeof type === 'string' && typeof data === 'object' && data !== null;
}
