// A value as the demo server keeps it, and its way from and to JSON.
import {
  DEFAULT_PERMISSIONS,
  type HandleValue,
  type Ttl,
  type ValueReference,
} from '../../src/handle/value.js';
import { badValue, parseJavaInt, primitiveText } from './bad-input.js';
import { dataFromJson, dataToJson } from './data-format.js';

/** A value in the store: its data are bytes, its permissions always four digits. */
export interface StoredValue {
  index: number;
  type: string;
  data: Buffer;
  permissions: string;
  ttl: Ttl;
  references: ValueReference[];
  timestampSeconds: number;
}

export const DEFAULT_TTL = 86_400;

const isoSeconds = (seconds: number): string => new Date(seconds * 1000).toISOString().replace('.000Z', 'Z');

/** Writes a value with the members and the order of the real server. */
export function valueToJson(value: StoredValue): HandleValue {
  const { index, type, data, permissions, ttl, references, timestampSeconds } = value;
  return {
    index,
    type,
    data: dataToJson(type, data),
    ...(permissions !== DEFAULT_PERMISSIONS && { permissions }),
    ttl,
    ...(timestampSeconds !== 0 && { timestamp: isoSeconds(timestampSeconds) }),
    ...(references.length > 0 && { references }),
  };
}

/** Reads a value of a request. Its own timestamp must be a date and is then thrown away. */
export function valueFromJson(json: unknown, timestampSeconds: number): StoredValue {
  if (json === null || typeof json !== 'object') {
    throw badValue(`java.lang.IllegalStateException: Not a JSON Object: ${JSON.stringify(json)}`);
  }
  const { index, type, data, permissions, ttl, timestamp, references } = json as Record<string, unknown>;
  readTimestamp(timestamp);
  return {
    index: readIndex(index),
    type: readType(type),
    data: dataFromJson(data),
    permissions: permissions === undefined ? DEFAULT_PERMISSIONS : readPermissions(permissions),
    ttl: readTtl(ttl),
    references: readReferences(references),
    timestampSeconds,
  };
}

const missing = (method: string): Error =>
  badValue(
    `java.lang.NullPointerException: Cannot invoke "com.google.gson.JsonElement.${method}()" because the return value of "com.google.gson.JsonObject.get(String)" is null`,
  );

function readIndex(index: unknown): number {
  if (index === undefined) throw missing('getAsInt');
  return typeof index === 'number' ? Math.trunc(index) : parseJavaInt(primitiveText(index));
}

function readType(type: unknown): string {
  if (type === undefined) throw missing('getAsString');
  return primitiveText(type);
}

/** The server's reader is off by one: the first of four digits is never looked at (GSON-RUN, "PERM5"). */
function readPermissions(permissions: unknown): string {
  const digits = primitiveText(permissions);
  if (digits === '*') return '1111';
  const place = (fromEnd: number): string | undefined =>
    digits.length > fromEnd ? digits.at(-fromEnd) : undefined;
  const given = [place(4), place(3), place(2), place(1)];
  return given.map((digit, at) => ((digit ?? DEFAULT_PERMISSIONS[at]) === '1' ? '1' : '0')).join('');
}

/** A number is relative; any text is a date, cut to 32 bits, so "300" is read as the year 300. */
function readTtl(ttl: unknown): Ttl {
  if (ttl === undefined) return DEFAULT_TTL;
  if (typeof ttl === 'number') return ttl | 0;
  if (typeof ttl !== 'string') throw badValue('java.lang.NumberFormatException: bad ttl');
  return isoSeconds((readDate(ttl) / 1000) | 0);
}

function readTimestamp(timestamp: unknown): void {
  if (timestamp === null) throw badValue('java.lang.UnsupportedOperationException: JsonNull');
  if (typeof timestamp === 'string') readDate(timestamp);
}

function readDate(text: string): number {
  const time = Date.parse(text);
  if (Number.isNaN(time)) throw badValue(`java.text.ParseException: Can't parse ${text}`);
  return time;
}

function readReferences(references: unknown): ValueReference[] {
  if (references === undefined || references === null) return [];
  return (references as ValueReference[]).map(({ handle, index }) => ({ handle, index }));
}

/** Equal in everything but the timestamp: such a value counts as unchanged. */
export function isSameValue(one: StoredValue, other: StoredValue): boolean {
  return (
    one.index === other.index &&
    one.type === other.type &&
    one.data.equals(other.data) &&
    one.permissions === other.permissions &&
    one.ttl === other.ttl &&
    JSON.stringify(one.references) === JSON.stringify(other.references)
  );
}
