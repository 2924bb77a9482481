// The struct library that Redis adds to Lua, without alignment ("!"): packs numbers and strings into bytes.
import type { LuaValue } from './lua-values.js';
import { NotSimulated, ReplyError } from './redis-reply.js';

interface Field {
  kind: 'integer' | 'float' | 'counted' | 'terminated' | 'padding';
  bytes: number;
  isSigned: boolean;
  isBigEndian: boolean;
}

/** Sizes in bytes of C integers on a 64-bit machine. Upper-case codes are unsigned. */
const INTEGER_BYTES: Record<string, number> = { b: 1, h: 2, l: 8, t: 8 };

const OTHER_FIELDS: Record<string, Pick<Field, 'kind' | 'bytes'>> = {
  f: { kind: 'float', bytes: 4 },
  d: { kind: 'float', bytes: 8 },
  s: { kind: 'terminated', bytes: 0 },
  x: { kind: 'padding', bytes: 1 },
};

const badArgument = (what: string): ReplyError => new ReplyError(`bad argument: ${what}`);

function* fieldsOf(format: string): Iterable<Field> {
  let isBigEndian = false;
  for (const [, letter = '', digits = ''] of format.matchAll(/(\S)(\d*)/g)) {
    if (letter === '>' || letter === '<' || letter === '=') isBigEndian = letter === '>';
    else yield { ...fieldOf(letter, digits === '' ? undefined : Number(digits)), isBigEndian };
  }
}

function fieldOf(letter: string, count: number | undefined): Omit<Field, 'isBigEndian'> {
  const fixed = OTHER_FIELDS[letter];
  if (fixed !== undefined) return { ...fixed, isSigned: false };
  if (letter === 'c') return { kind: 'counted', bytes: count ?? 1, isSigned: false };
  const lower = letter.toLowerCase();
  const bytes = lower === 'i' ? (count ?? 4) : INTEGER_BYTES[lower];
  if (bytes === undefined || bytes > 8) throw new NotSimulated(`struct with ${letter}`);
  return { kind: 'integer', bytes, isSigned: letter === lower };
}

export function sizeOf(format: string): number {
  return [...fieldsOf(format)].reduce((sum, { kind, bytes }) => {
    if (kind === 'terminated' || (kind === 'counted' && bytes === 0))
      throw badArgument('variable-size format');
    return sum + bytes;
  }, 0);
}

export function pack(format: string, values: readonly LuaValue[]): string {
  let taken = 0;
  return [...fieldsOf(format)]
    .map((field) => packed(field, field.kind === 'padding' ? undefined : values[taken++]))
    .join('');
}

function packed(field: Field, value: LuaValue): string {
  if (field.kind === 'padding') return '\0';
  if (field.kind === 'counted' || field.kind === 'terminated') return packedText(field, value);
  const number = typeof value === 'string' ? Number(value) : value;
  if (typeof number !== 'number' || Number.isNaN(number)) throw badArgument('number expected');
  const view = new DataView(new ArrayBuffer(8));
  if (field.kind === 'integer') view.setBigInt64(0, BigInt.asIntN(64, BigInt(Math.trunc(number))));
  else if (field.bytes === 4) view.setFloat32(4, number);
  else view.setFloat64(0, number);
  const bytes = Buffer.from(view.buffer).subarray(8 - field.bytes);
  return (field.isBigEndian ? bytes : bytes.reverse()).toString('latin1');
}

function packedText({ kind, bytes }: Field, value: LuaValue): string {
  if (typeof value !== 'string') throw badArgument('string expected');
  if (kind === 'terminated') return `${value}\0`;
  if (value.length < bytes) throw badArgument('string too short');
  return bytes === 0 ? value : value.slice(0, bytes);
}

/** Unpacks values, and appends the position after the last value. */
export function unpack(format: string, bytes: string, from: number): LuaValue[] {
  const values: LuaValue[] = [];
  let at = from - 1;
  for (const field of fieldsOf(format)) {
    const last = values.at(-1);
    // The length of "c0" is the preceding number.
    const isCounted = field.kind === 'counted' && field.bytes === 0;
    if (isCounted && typeof last !== 'number') throw badArgument('format c0 needs a previous size');
    const end = isCounted ? at + (values.pop() as number) : endOf(field, bytes, at);
    if (end > bytes.length) throw badArgument('data string too short');
    if (field.kind !== 'padding') values.push(unpacked(field, bytes.slice(at, end)));
    at = end;
  }
  return [...values, at + 1];
}

function endOf({ kind, bytes: size }: Field, bytes: string, at: number): number {
  if (kind !== 'terminated') return at + size;
  const end = bytes.indexOf('\0', at);
  if (end === -1) throw badArgument('unfinished string in data');
  return end + 1;
}

function unpacked({ kind, bytes: size, isSigned, isBigEndian }: Field, part: string): LuaValue {
  if (kind === 'counted') return part;
  if (kind === 'terminated') return part.slice(0, -1);
  const bytes = Buffer.from(part, 'latin1');
  if (!isBigEndian) bytes.reverse();
  if (kind === 'float') return size === 4 ? bytes.readFloatBE() : bytes.readDoubleBE();
  const bits = BigInt(`0x${bytes.toString('hex')}`);
  return Number(isSigned ? BigInt.asIntN(8 * size, bits) : BigInt.asUintN(8 * size, bits));
}
