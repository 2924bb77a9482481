// Libraries that Redis adds to Lua: bit, cjson and sha1hex. lua-struct.ts has struct.
import { createHash } from 'node:crypto';
import { pack, sizeOf, unpack } from './lua-struct.js';
import { LIGHT_NULL, LuaTable, type LuaValue } from './lua-values.js';
import { NotSimulated, ReplyError, formatNumber } from './redis-reply.js';

type Library = Record<string, (args: readonly LuaValue[]) => readonly LuaValue[]>;

/** Converts a value to a number. @throws ReplyError if the value is not numeric */
export function numberOf(value: LuaValue): number {
  const number = typeof value === 'string' ? Number(value) : value;
  if (typeof number !== 'number' || Number.isNaN(number))
    throw new ReplyError('bad argument: number expected');
  return number;
}

/** Converts a value to a string. @throws ReplyError if the value is neither a string nor a number */
export function textOf(value: LuaValue): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return formatNumber(value, 14);
  throw new ReplyError('bad argument: string expected');
}

/** Rounds like the bit library: to the nearest integer, ties to even, and then to 32 bits. */
function toBits(value: LuaValue): number {
  const number = numberOf(value);
  const floor = Math.floor(number);
  const isUp = number - floor > 0.5 || (number - floor === 0.5 && floor % 2 !== 0);
  return Number(BigInt.asIntN(32, BigInt(isUp ? floor + 1 : floor)));
}

const fold =
  (join: (a: number, b: number) => number) =>
  ([first, ...rest]: readonly LuaValue[]): number[] => [
    rest.reduce((bits: number, value) => join(bits, toBits(value)) | 0, toBits(first)),
  ];

const shift =
  (by: (bits: number, count: number) => number) =>
  ([value, count]: readonly LuaValue[]): number[] => [by(toBits(value), toBits(count) & 31) | 0];

const swapBytes = (bits: number): number =>
  (bits << 24) | ((bits & 0xff00) << 8) | ((bits >>> 8) & 0xff00) | (bits >>> 24);

function toHex([value, count = 8]: readonly LuaValue[]): string[] {
  const digits = numberOf(count);
  const hex = (toBits(value) >>> 0).toString(16).padStart(8, '0').slice(-Math.abs(digits));
  return [digits < 0 ? hex.toUpperCase() : hex];
}

const BIT: Library = {
  bit_tobit: ([value]) => [toBits(value)],
  bit_bnot: ([value]) => [~toBits(value)],
  bit_bswap: ([value]) => [swapBytes(toBits(value))],
  bit_tohex: toHex,
  bit_band: fold((a, b) => a & b),
  bit_bor: fold((a, b) => a | b),
  bit_bxor: fold((a, b) => a ^ b),
  bit_lshift: shift((bits, count) => bits << count),
  bit_rshift: shift((bits, count) => bits >>> count),
  bit_arshift: shift((bits, count) => bits >> count),
  bit_rol: shift((bits, count) => (bits << count) | (bits >>> (32 - count))),
  bit_ror: shift((bits, count) => (bits >>> count) | (bits << (32 - count))),
};

const ESCAPES: Record<string, string> = {
  '"': '\\"',
  '\\': '\\\\',
  '/': '\\/',
  '\b': '\\b',
  '\t': '\\t',
  '\n': '\\n',
  '\f': '\\f',
  '\r': '\\r',
  '\x7f': '\\u007f',
};

const quoted = (text: string): string =>
  `"${text.replace(
    /["\\/\x00-\x1f\x7f]/g,
    (char) => ESCAPES[char] ?? `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )}"`;

function toJson(value: LuaValue): string {
  if (value === undefined || value === LIGHT_NULL) return 'null';
  if (typeof value === 'string') return quoted(value);
  if (typeof value === 'number') return formatNumber(value, 14);
  return typeof value === 'boolean' ? String(value) : tableToJson(value);
}

/** Encodes a table as an array if all its keys are positive integers, and an empty table as an object. */
function tableToJson(table: LuaTable): string {
  const places = [...table.keys()].map((key) =>
    typeof key === 'number' && key > 0 && key % 1 === 0 ? key : NaN,
  );
  const length = places.length === 0 ? NaN : Math.max(...places);
  if (Number.isNaN(length)) {
    return `{${[...table].map(([key, value]) => `${quoted(textOf(key))}:${toJson(value)}`).join(',')}}`;
  }
  if (length > 10 && length > 2 * places.length)
    throw new ReplyError('Cannot serialise table: excessively sparse array');
  return `[${Array.from({ length }, (_, index) => toJson(table.get(index + 1))).join(',')}]`;
}

function fromJson(text: string): LuaValue {
  // JSON.parse leaves bytes unchanged, except for "\u" escapes, which cjson converts to UTF-8.
  if (/\\u/.test(text)) throw new NotSimulated('cjson.decode of \\u');
  try {
    return toLua(JSON.parse(text));
  } catch {
    throw new ReplyError('Expected value but found invalid token');
  }
}

function toLua(value: unknown): LuaValue {
  if (value === null) return LIGHT_NULL;
  if (Array.isArray(value)) return LuaTable.of(value.map(toLua));
  if (typeof value !== 'object') return value as LuaValue;
  return new LuaTable(Object.entries(value).map(([name, field]) => [name, toLua(field)]));
}

export const LIBRARIES: Library = {
  ...BIT,
  cjson_encode: ([value]) => [toJson(value)],
  cjson_decode: ([text]) => [fromJson(textOf(text))],
  cjson_null: () => [LIGHT_NULL],
  sha1hex: ([text]) => [createHash('sha1').update(textOf(text), 'latin1').digest('hex')],
  struct_pack: ([format, ...values]) => [pack(textOf(format), values)],
  struct_unpack: ([format, bytes, from = 1]) => unpack(textOf(format), textOf(bytes), numberOf(from)),
  struct_size: ([format]) => [sizeOf(textOf(format))],
};
