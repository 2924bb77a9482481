// A stored value and its conversion from and to JSON, in all data formats.
import { isDeepStrictEqual } from 'node:util';
import { ENCODERS, type ValueData, decodeData, encodeAdmin } from '../handle/value-data.js';
import {
  DEFAULT_PERMISSIONS,
  DEFAULT_TTL_SECONDS,
  type HandleValue,
  type Ttl,
  type ValueReference,
  isoSeconds,
} from '../handle/value.js';
import { BadInput, badValue, numberFormat, parseJavaInt, primitiveText } from './java-input.js';

/** A value in the store, with binary data and always four permission digits. */
export interface StoredValue {
  index: number;
  type: string;
  data: Buffer;
  permissions: string;
  ttl: Ttl;
  references: ValueReference[];
  timestampSeconds: number;
}

/** Converts a value to JSON with the members and the order of the real server. */
export function valueToJson(value: StoredValue): HandleValue {
  const { index, type, data, permissions, ttl, references, timestampSeconds } = value;
  return {
    index,
    type,
    data: decodeData(type, data),
    ...(permissions !== DEFAULT_PERMISSIONS && { permissions }),
    ttl,
    ...(timestampSeconds !== 0 && { timestamp: isoSeconds(timestampSeconds) }),
    ...(references.length > 0 && { references }),
  };
}

/** Parses a value from a request. A timestamp given as text must be a date; every timestamp is ignored. */
export function valueFromJson(json: unknown, timestampSeconds: number): StoredValue {
  if (json === null || typeof json !== 'object')
    throw badValue(`java.lang.IllegalStateException: Not a JSON Object: ${JSON.stringify(json)}`);
  const { index, type, data, permissions, ttl, timestamp, references } = json as Record<string, unknown>;
  readTimestamp(timestamp);
  return {
    index: indexIn(index),
    type: readType(type),
    data: dataFromJson(data),
    permissions: permissions === undefined ? DEFAULT_PERMISSIONS : permissionsIn(permissions),
    ttl: ttlIn(ttl),
    references: readReferences(references),
    timestampSeconds,
  };
}

const missingMember = (method: string): Error =>
  badValue(
    `java.lang.NullPointerException: Cannot invoke "com.google.gson.JsonElement.${method}()" because the return value of "com.google.gson.JsonObject.get(String)" is null`,
  );

function indexIn(index: unknown): number {
  if (index === undefined) throw missingMember('getAsInt');
  return typeof index === 'number' ? Math.trunc(index) : parseJavaInt(primitiveText(index));
}

function readType(type: unknown): string {
  if (type === undefined) throw missingMember('getAsString');
  return primitiveText(type);
}

/** Parses permissions like the server, which never reads the first of four digits (recording "PERM5"). */
function permissionsIn(permissions: unknown): string {
  const digits = primitiveText(permissions);
  if (digits === '*') return '1111';
  const place = (fromEnd: number): string | undefined =>
    digits.length > fromEnd ? digits.at(-fromEnd) : undefined;
  const given = [place(4), place(3), place(2), place(1)];
  return given.map((digit, at) => ((digit ?? DEFAULT_PERMISSIONS[at]) === '1' ? '1' : '0')).join('');
}

/** Parses a TTL: a number is relative, any text is a date truncated to 32 bits, so "300" is the year 300. */
function ttlIn(ttl: unknown): Ttl {
  if (ttl === undefined) return DEFAULT_TTL_SECONDS;
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

/** Whether two values are equal except for their timestamps, so that the value counts as unchanged. */
export function isSameValue(one: StoredValue, other: StoredValue): boolean {
  return isDeepStrictEqual({ ...one, timestampSeconds: 0 }, { ...other, timestampSeconds: 0 });
}

const READERS: typeof ENCODERS = { ...ENCODERS, admin: adminFromJson };

/** Parses the data of a value, whose format need not match the type. */
function dataFromJson(data: unknown): Buffer {
  if (data === undefined) {
    throw badValue(
      'java.lang.NullPointerException: Cannot invoke "com.google.gson.JsonElement.isJsonPrimitive()" because "<parameter1>" is null',
    );
  }
  if (data === null || typeof data !== 'object') return Buffer.from(primitiveText(data), 'utf8');
  const { format, value } = data as Partial<ValueData>;
  const read = READERS[String(format).toLowerCase()];
  if (read === undefined) throw badValue(`java.text.ParseException: Unexpected type ${String(format)}`);
  try {
    return read(value);
  } catch (error) {
    if (error instanceof BadInput) throw error;
    throw badValue(`java.text.ParseException: ${(error as Error).message}`);
  }
}

function adminFromJson(json: unknown): Buffer {
  const { handle, index, permissions, legacyByteLength } = json as Record<string, unknown>;
  return encodeAdmin({
    handle: String(handle),
    index: Number(index),
    permissions: permissionBits(permissions),
    legacy: legacyByteLength === true,
  });
}

/** Parses the twelve permissions in any form that the server accepts. */
function permissionBits(permissions: unknown): number {
  if (permissions === undefined || permissions === null) return 0;
  if (permissions === '*') return 0xfff;
  if (typeof permissions === 'boolean') return permissions ? 0xfff : 0;
  if (Array.isArray(permissions))
    return permissions.reduce<number>((bits, on, place) => (on ? bits | (1 << place) : bits), 0);
  const digits = primitiveText(permissions);
  if (!/^[01]{1,12}$/.test(digits)) throw numberFormat(digits);
  return parseInt(digits, 2);
}
