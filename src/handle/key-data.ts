// HS_PUBKEY data: a public key as the Handle System's bytes and as a JSON Web Key.
import { ByteReader, int16, sized } from './bytes-codec.js';

interface KeyLayout {
  name: string;
  /** Members in the order of the bytes. */
  stored: readonly string[];
  /** Members in the order of the JSON. */
  shown: readonly string[];
}

const LAYOUTS: Record<string, KeyLayout> = {
  RSA: { name: 'RSA_PUB_KEY', stored: ['e', 'n'], shown: ['n', 'e'] },
  DSA: { name: 'DSA_PUB_KEY', stored: ['q', 'p', 'g', 'y'], shown: ['y', 'p', 'q', 'g'] },
};

/** A JSON Web Key with its numbers in base64url. */
export type Jwk = Record<string, string>;

export function decodeKey(bytes: Buffer): Jwk {
  const reader = new ByteReader(bytes);
  const name = reader.text();
  const entry = Object.entries(LAYOUTS).find(([, layout]) => layout.name === name);
  if (entry === undefined) throw new RangeError('not a public key');
  reader.int16();
  const [kty, { stored, shown }] = entry;
  const numbers = Object.fromEntries(stored.map((member) => [member, unsigned(reader.sized())]));
  return Object.fromEntries([
    ['kty', kty],
    ...shown.map((member): [string, string] => [member, numbers[member] ?? '']),
  ]);
}

export function keyFromJson(json: unknown): Buffer {
  const jwk = json as Jwk;
  const kty = jwk.kty ?? '';
  const layout = Object.hasOwn(LAYOUTS, kty) ? LAYOUTS[kty] : undefined;
  if (layout === undefined) throw new RangeError('a key that is neither RSA nor DSA');
  const numbers = layout.stored.map((member) => sized(signed(jwk[member] ?? '')));
  return Buffer.concat([sized(layout.name), int16(0), ...numbers]);
}

const unsigned = (bytes: Buffer): string =>
  (bytes[0] === 0 ? bytes.subarray(1) : bytes).toString('base64url');

/** Java writes positive numbers with a zero byte in front when the highest bit is set. */
function signed(base64url: unknown): Buffer {
  // `Buffer.from` allocates the `length` of an object, whatever the object says.
  if (typeof base64url !== 'string') throw new TypeError('a number of a key that is no text');
  const bytes = Buffer.from(base64url, 'base64url');
  return (bytes[0] ?? 0) > 0x7f ? Buffer.concat([Buffer.from([0]), bytes]) : bytes;
}
