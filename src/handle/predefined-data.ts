// HS_ADMIN, HS_VLIST and HS_PUBKEY data (RFC 3651, section 3.2), as bytes and as JSON.
import { ByteReader, int16, int32, sized } from './bytes.js';
import type { ValueReference } from './value.js';

/** Permission bits in hdllib's AdminRecord. */
export const RIGHT = {
  addHandle: 0x001,
  deleteHandle: 0x002,
  addDerivedPrefix: 0x004,
  deleteDerivedPrefix: 0x008,
  modifyValue: 0x010,
  removeValue: 0x020,
  addValue: 0x040,
  modifyAdmin: 0x080,
  removeAdmin: 0x100,
  addAdmin: 0x200,
  readValue: 0x400,
  listHandles: 0x800,
} as const;

/** HS_ADMIN data; `permissions` are RIGHT bits. */
export interface AdminData extends ValueReference {
  permissions: number;
  /** Whether the data has the layout before version 7.3, with two additional bytes at the end. */
  legacy: boolean;
}

/** Decodes HS_ADMIN data. @throws RangeError for bytes that are not HS_ADMIN data */
export function decodeAdmin(bytes: Buffer): AdminData {
  const reader = new ByteReader(bytes);
  const permissions = reader.int16();
  const handle = reader.text();
  const index = reader.int32();
  if (reader.remaining !== 0 && reader.remaining !== 2) throw new RangeError('not an HS_ADMIN value');
  return { handle, index, permissions, legacy: reader.remaining === 2 };
}

export function encodeAdmin({ handle, index, permissions, legacy }: AdminData): Buffer {
  return Buffer.concat([int16(permissions), sized(handle), int32(index), ...(legacy ? [int16(0)] : [])]);
}

/** HS_ADMIN data in record interface JSON: twelve digits, highest bit first. */
export interface AdminJson extends ValueReference {
  permissions: string;
  legacyByteLength?: boolean;
}

export function adminToJson({ handle, index, permissions, legacy }: AdminData): AdminJson {
  const bits = permissions.toString(2).padStart(12, '0').slice(-12);
  return { handle, index, permissions: bits, ...(legacy && { legacyByteLength: true }) };
}

/** Decodes HS_VLIST data. @throws RangeError for bytes that are not HS_VLIST data */
export function decodeVlist(bytes: Buffer): ValueReference[] {
  const reader = new ByteReader(bytes);
  const entries = reader.list(() => ({ handle: reader.text(), index: reader.int32() }));
  if (reader.remaining !== 0) throw new RangeError('not an HS_VLIST value');
  return entries;
}

/** Encodes HS_VLIST data, or a value's references, which have the same layout. */
export function encodeVlist(entries: readonly ValueReference[]): Buffer {
  const parts = entries.map(({ handle, index }) => Buffer.concat([sized(handle), int32(index)]));
  return Buffer.concat([int32(entries.length), ...parts]);
}

interface KeyLayout {
  name: string;
  binaryOrder: readonly string[];
  /** Member order of the JSON Web Key in a Handle server's JSON. */
  jsonOrder: readonly string[];
  /** Four unused bytes that hdllib writes after an RSA key's numbers. */
  tail: Buffer;
}

const LAYOUTS: Record<string, KeyLayout> = {
  RSA: { name: 'RSA_PUB_KEY', binaryOrder: ['e', 'n'], jsonOrder: ['n', 'e'], tail: int32(0) },
  DSA: {
    name: 'DSA_PUB_KEY',
    binaryOrder: ['q', 'p', 'g', 'y'],
    jsonOrder: ['y', 'p', 'q', 'g'],
    tail: Buffer.alloc(0),
  },
};

/** A JSON Web Key with base64url numbers. */
export type Jwk = Record<string, string>;

export function encodePublicKey(json: unknown): Buffer {
  const jwk = json as Jwk;
  const kty = jwk.kty ?? '';
  const layout = Object.hasOwn(LAYOUTS, kty) ? LAYOUTS[kty] : undefined;
  if (layout === undefined) throw new RangeError('a key that is neither RSA nor DSA');
  const numbers = layout.binaryOrder.map((member) => sized(signed(jwk[member] ?? '')));
  return Buffer.concat([sized(layout.name), int16(0), ...numbers, layout.tail]);
}

/** Decodes a public key to a JSON Web Key. @throws RangeError for a key that is neither RSA nor DSA */
export function decodePublicKey(bytes: Buffer): Jwk {
  const reader = new ByteReader(bytes);
  const name = reader.text();
  const found = Object.entries(LAYOUTS).find(([, layout]) => layout.name === name);
  if (found === undefined) throw new RangeError('not a public key');
  const [kty, { binaryOrder, jsonOrder }] = found;
  reader.int16();
  const numbers = new Map(binaryOrder.map((member) => [member, unsigned(reader.sized())]));
  return { kty, ...Object.fromEntries(jsonOrder.map((member) => [member, numbers.get(member) ?? ''])) };
}

const unsigned = (bytes: Buffer): string =>
  (bytes[0] === 0 ? bytes.subarray(1) : bytes).toString('base64url');

/** Converts a number to Java's form: a zero byte precedes a positive number with its highest bit set. */
export function signed(base64url: unknown): Buffer {
  // For an object, `Buffer.from` would allocate any `length` that a client sends.
  if (typeof base64url !== 'string') throw new TypeError('a number of a key is not a string');
  const bytes = Buffer.from(base64url, 'base64url');
  return (bytes[0] ?? 0) > 0x7f ? Buffer.concat([Buffer.from([0]), bytes]) : bytes;
}
