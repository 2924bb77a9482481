// Values in ePIC v2: bytes ↔ v2 `data` and `parsed_data`; bytes ↔ the record interface's `{format, value}`; the values
// of a request body, validated strictly in meaning and tolerantly in spelling.
import { isUtf8 } from 'node:buffer';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { tryDecode } from '../../handle/bytes.js';
import {
  RIGHT,
  type ValueData,
  decodeAdmin,
  decodeData,
  encodeAdmin,
  bytesOfValueData,
  encodeVlist,
  stepDecodeVlist,
} from '../../handle/value-data.js';
import type { Ttl, ValueReference } from '../../handle/value.js';
import { FIRST_ISSUE } from '../../http/request-body.js';
import { type Steps, mapInSteps, runToEnd } from '../../time-slicer.js';
import {
  MAX_ITEMS,
  type Reject,
  arrayField,
  bodyError,
  booleanField,
  firstIssue,
  integerField,
  permissionFields,
  readPermissionFields,
  readTtlFields,
  referencesField,
  rejectAt,
  textField,
  WHOLE_CHARACTERS,
} from './attributes.js';

/** A validated request value. A value without `idx` gets a free index. */
export interface V2Input {
  idx?: number;
  type: string;
  data: Buffer;
  ttl: Ttl;
  references: ValueReference[];
  /** Four digits: admin read, admin write, public read, public write. */
  permissions: string;
}

/** Types are case-sensitive, as in the original service. */
export const ADMIN_TYPE = 'HS_ADMIN';

export const MEMBERS_TYPE = 'HS_VLIST';

/** Whether the type has structured data, which is never empty. */
export const isStructured = (type: string): boolean => type === ADMIN_TYPE || type === MEMBERS_TYPE;

const NONE = Buffer.alloc(0);

/** Whether a value is a secret key, which no response contains. The Handle server ignores the case of the type. */
export const isHidden = ({ type }: { type: string }): boolean => /^HS_SECKEY(\.|$)/i.test(type);

/** Reads a value's bytes from `data` or `parsed_data`, which must agree; without either, the value is empty. */
function readData({ type, data, parsed_data: parsed }: z.infer<typeof bodyValue>, position: number): Buffer {
  const rejectParsed = rejectAt(position, 'parsed_data');
  const bytes = typeof data === 'string' ? bytesOfData(type, data, rejectAt(position, 'data')) : undefined;
  // Responses use null for missing parsed data, and clients send responses back.
  if (parsed === undefined || parsed === null) {
    if (bytes === undefined && (isStructured(type) || isHidden({ type })))
      throw rejectParsed('give parsed_data or data');
    // As in the original service; EUDAT's epicclient clears values this way.
    return bytes ?? NONE;
  }
  const parsedBytes = bytesOfParsed(type, parsed, rejectParsed);
  if (bytes === undefined) return parsedBytes;
  if (!isSameData(type, bytes, parsedBytes))
    throw rejectParsed('data has different content; give only one of them, or the same content in both');
  return bytes;
}

/** Compares by meaning, because HS_ADMIN also has an older, longer encoding. */
function isSameData(type: string, one: Buffer, other: Buffer): boolean {
  if (one.equals(other)) return true;
  const parsed = parseData(type, one);
  return parsed !== null && isDeepStrictEqual(parsed, parseData(type, other));
}

/** Decodes canonical base64; treats anything else as text, because MyCoRe sends plain URLs in `data`. */
function bytesOfData(type: string, data: string, reject: Reject): Buffer {
  const bytes = decodeCanonicalBase64(data);
  if (bytes !== undefined) return bytes;
  if (isStructured(type)) throw reject('give base64, or parsed_data');
  return bytesOfText(data, reject);
}

/** Matches the original service's line breaks after every 60 characters. */
const WRAPPED = /^(?:[^\r\n]{60}\r?\n)+[^\r\n]{0,60}$/;

/** Decodes canonical base64, padded and with zero unused bits (RFC 4648 §3.5), which is unique per byte string. */
function decodeCanonicalBase64(data: string): Buffer | undefined {
  const digits = WRAPPED.test(data) ? data.replace(/[\r\n]/g, '') : data;
  const bytes = Buffer.from(digits, 'base64');
  return bytes.toString('base64') === digits ? bytes : undefined;
}

function bytesOfParsed(type: string, parsed: unknown, reject: Reject): Buffer {
  if (type === ADMIN_TYPE) return bytesOfAdmin(parsed, reject);
  if (type === MEMBERS_TYPE) return bytesOfMembers(parsed, reject);
  // The original service stores an object in Ruby notation, which no client expects.
  if (typeof parsed !== 'string' && typeof parsed !== 'number' && typeof parsed !== 'boolean')
    throw reject('give a string, a number, true or false');
  // Parsed JSON has other digits of a larger number, or Infinity.
  if (typeof parsed === 'number' && Math.abs(parsed) > Number.MAX_SAFE_INTEGER)
    throw reject(`give a number beyond ${Number.MAX_SAFE_INTEGER} as a string`);
  return bytesOfText(String(parsed), reject);
}

function bytesOfText(text: string, reject: Reject): Buffer {
  if (!text.isWellFormed()) throw reject(WHOLE_CHARACTERS);
  return Buffer.from(text, 'utf8');
}

function parseOrReject<T>(schema: z.ZodType<T>, given: unknown, reject: Reject): T {
  const parsed = schema.safeParse(given, FIRST_ISSUE);
  if (!parsed.success) throw reject(firstIssue(parsed.error));
  return parsed.data;
}

/** Returns `parsed_data` for bytes: text, an object for HS_ADMIN, a list for HS_VLIST, or null. */
export function* stepParseData(type: string, bytes: Buffer) {
  if (type === ADMIN_TYPE) return tryDecode(showAdmin, bytes) ?? null;
  if (type === MEMBERS_TYPE) return (yield* stepMembers(bytes, showMember)) ?? null;
  return decodePrintable(bytes) ?? null;
}

/** Matches the ASCII control characters except tab, line feed and carriage return. */
const CONTROL = /[^\P{Cc}\t\n\r\u0080-\u009f]/u;

/** As `stepParseData`, for the data of a request body. */
export const parseData = (type: string, bytes: Buffer) => runToEnd(stepParseData(type, bytes));

/** Returns the text of UTF-8 bytes; undefined for other bytes, and for a text with control characters. */
export function decodePrintable(bytes: Buffer): string | undefined {
  if (!isUtf8(bytes)) return undefined;
  const text = bytes.toString('utf8');
  return CONTROL.test(text) ? undefined : text;
}

/** Permissions in the original service's order and naming. */
const PERMISSIONS = [
  ['add_handle', RIGHT.addHandle],
  ['delete_handle', RIGHT.deleteHandle],
  ['add_naming_auth', RIGHT.addDerivedPrefix],
  ['delete_naming_auth', RIGHT.deleteDerivedPrefix],
  ['modify_value', RIGHT.modifyValue],
  ['remove_value', RIGHT.removeValue],
  ['add_value', RIGHT.addValue],
  ['read_value', RIGHT.readValue],
  ['modify_admin', RIGHT.modifyAdmin],
  ['remove_admin', RIGHT.removeAdmin],
  ['add_admin', RIGHT.addAdmin],
  ['list_handles', RIGHT.listHandles],
] as const;

/** Permission names in services based on Handle library version 8. */
const VERSION_8_NAMES = {
  add_naming_auth: 'add_derived_prefix',
  delete_naming_auth: 'delete_derived_prefix',
};

const renameVersion8 = (perms: unknown): unknown => {
  if (typeof perms !== 'object' || perms === null) return perms;
  const given = perms as Record<string, unknown>;
  const renamed = Object.entries(VERSION_8_NAMES).map(([name, other]) => [name, given[name] ?? given[other]]);
  return { ...given, ...Object.fromEntries(renamed) };
};

/** Requires every property, as in the original service. */
const adminField = z.object(
  {
    adminId: textField,
    adminIdIndex: integerField(),
    perms: z.preprocess(
      renameVersion8,
      z.object(Object.fromEntries(PERMISSIONS.map(([name]) => [name, booleanField])), {
        error: 'give an object of the twelve permissions',
      }),
    ),
  },
  { error: 'give an object of adminId, adminIdIndex and perms' },
);

function bytesOfAdmin(json: unknown, reject: Reject): Buffer {
  const { adminId, adminIdIndex, perms } = parseOrReject(adminField, json, reject);
  const permissions = PERMISSIONS.reduce((bits, [name, bit]) => (perms[name] ? bits | bit : bits), 0);
  return encodeAdmin({ handle: adminId, index: adminIdIndex, permissions, legacy: false });
}

function showAdmin(bytes: Buffer) {
  const { handle, index, permissions } = decodeAdmin(bytes);
  const perms = PERMISSIONS.map(([name, bit]) => [name, (permissions & bit) !== 0] as const);
  return { adminId: handle, adminIdIndex: index, perms: Object.fromEntries(perms) };
}

const membersField = arrayField(
  z.object({ idx: integerField(), handle: textField }, { error: 'give an object of idx and handle' }),
  'give an array of objects with idx and handle',
);

const bytesOfMembers = (json: unknown, reject: Reject): Buffer =>
  encodeVlist(parseOrReject(membersField, json, reject).map(({ idx, handle }) => ({ handle, index: idx })));

const showMember = (handle: string, idx: number) => ({ idx, handle });

/** Decodes HS_VLIST data to the results of `create`; undefined for other bytes. */
export function* stepMembers<T>(
  bytes: Buffer,
  create: (handle: string, index: number) => T,
): Steps<T[] | undefined> {
  try {
    return yield* stepDecodeVlist(bytes, create);
  } catch {
    return undefined;
  }
}

/** Returns the readable format if lossless, else base64. */
export function recordDataOfBytes(type: string, bytes: Buffer): ValueData {
  const data = isStructured(type) ? decodeData(type, bytes) : undefined;
  // HS_ADMIN and HS_VLIST JSON cannot represent extra bits or trailing bytes.
  if (data !== undefined && bytesOfValueData(data).equals(bytes)) return data;
  const text = decodePrintable(bytes);
  return text === undefined
    ? { format: 'base64', value: bytes.toString('base64') }
    : { format: 'string', value: text };
}

/** Treats -1 like a missing index, as in the original service: both request a free index. */
const withoutRequest = (idx: unknown): unknown =>
  idx === null || idx === -1 || idx === '-1' ? undefined : idx;

/** Ignores unknown properties, and `timestamp`, which the Handle server sets. */
export const bodyValue = z.object(
  {
    idx: z.preprocess(withoutRequest, integerField(1).optional()),
    type: textField,
    parsed_data: z.unknown().optional(),
    data: z.string({ error: 'give a string' }).nullish(),
    timestamp: z.unknown().optional(),
    ttl_type: integerField(0, 1).nullish(),
    ttl: z.union([z.number(), z.string()], { error: 'give seconds or a date' }).nullish(),
    refs: referencesField.nullish(),
    ...permissionFields,
  },
  { error: 'give an object' },
);

/** Parses the values. @throws ServiceError V2_BAD_BODY, which names the position and property of an invalid value */
export function* readInputs(body: unknown): Steps<V2Input[]> {
  if (!Array.isArray(body)) throw bodyError('give an array of values');
  if (body.length === 0) throw bodyError('give at least one value');
  if (body.length > MAX_ITEMS) throw bodyError(`give at most ${MAX_ITEMS} values`);
  const values: readonly unknown[] = body;
  const inputs = yield* mapInSteps(values, readInput);
  assertDistinctIndexes(inputs);
  return inputs;
}

function readInput(given: unknown, position: number): V2Input {
  const parsed = bodyValue.safeParse(given, FIRST_ISSUE);
  if (!parsed.success) throw bodyError(firstIssue(parsed.error, `[${position}]`));
  const { idx, type, ttl_type, ttl, refs, ...permissions } = parsed.data;
  return {
    ...(idx !== undefined && { idx }),
    type,
    data: readData(parsed.data, position),
    ttl: readTtlFields(ttl_type ?? undefined, ttl ?? undefined, rejectAt(position, 'ttl')),
    references: refs ?? [],
    permissions: readPermissionFields(permissions),
  };
}

function assertDistinctIndexes(inputs: readonly V2Input[]): void {
  const positions = new Map<number, number>();
  for (const [position, { idx }] of inputs.entries()) {
    if (idx === undefined) continue;
    const first = positions.get(idx);
    if (first !== undefined) throw rejectAt(position, 'idx')(`give another index; [${first}] has ${idx} too`);
    positions.set(idx, position);
  }
}
