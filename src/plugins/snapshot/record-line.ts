// Formats and parses a record with its times as one line of JSON, for exports, imports and seeds.
import { toBytes, toText } from '../../handle/bytes.js';
import { type HandleRef, MAX_HANDLE_BYTES } from '../../handle/handle.js';
import { parseJson } from '../../handle/json.js';
import { type HandleValue, isPublic } from '../../handle/value.js';
import type { KeyedEntry } from '../../cache/entry.js';

const isoTime = (ms: number): string => new Date(ms).toISOString();

/** Formats a record; undefined for a not-found answer, because exports contain only records. */
export function formatRecordLine({ key, entry }: KeyedEntry): string | undefined {
  if (entry.kind === 'not-found') return undefined;
  const { requestedAt, staleAt, deleteAt } = entry;
  const times = { requestedAt: isoTime(requestedAt), staleAt: isoTime(staleAt), deleteAt: isoTime(deleteAt) };
  const head = JSON.stringify({ handle: key, ...times });
  // The values are already JSON.
  return `${head.slice(0, -1)},"values":${entry.kind === 'found' ? toText(entry.values) : '[]'}}\n`;
}

/**
 * Parses a record; undefined if the line is not a record. Non-public values are dropped, because the file is
 * untrusted.
 */
export function parseRecordLine(line: string, refOf: (text: string) => HandleRef): KeyedEntry | undefined {
  const { handle, values, ...times } = parseObject(line);
  if (typeof handle !== 'string' || !isLineHandle(handle)) return undefined;
  const [requestedAt, staleAt, deleteAt] = ['requestedAt', 'staleAt', 'deleteAt'].map((name) =>
    typeof times[name] === 'string' ? Date.parse(times[name]) : NaN,
  ) as [number, number, number];
  if (!Array.isArray(values) || !values.every(isLineValue)) return undefined;
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
    const parsed = parseJson(line);
    return typeof parsed === 'object' && parsed !== null ? (parsed as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

const isLineHandle = (text: string): boolean =>
  text !== '' && !text.includes('\0') && Buffer.byteLength(text) <= MAX_HANDLE_BYTES;

function isLineValue(value: unknown): value is HandleValue {
  const { index, type, data } = (value ?? {}) as Partial<HandleValue>;
  return Number.isInteger(index) && typeof type === 'string' && typeof data === 'object' && data !== null;
}
