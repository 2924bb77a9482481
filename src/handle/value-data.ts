// Values as bytes, their data as bytes and as Handle server JSON of any format (RFC 3651 §3), and private key files.
import { isUtf8 } from 'node:buffer';
import { createCipheriv, pbkdf2Sync, randomBytes } from 'node:crypto';
import { isIPv4 } from 'node:net';
import { ByteReader, ByteWriter, assertFits, completeSteps, tryDecode } from './bytes.js';
import { GROUP_SIZE, type Steps } from '../time-slicer.js';
import { DEFAULT_TTL_SECONDS, type HandleValue, type ValueReference, lastFourPermissions } from './value.js';

export interface ValueData {
  format: string;
  value: unknown;
}

/** Encodes JSON data; may throw LengthLimitError before it creates more than `maxBytes`. */
type Encode = (value: unknown, maxBytes?: number) => Buffer;

/** Encoders of JSON data by format. */
export const ENCODERS: Record<string, Encode> = {
  string: encodeText,
  base64: (value) => Buffer.from(String(value), 'base64'),
  hex: encodeHex,
  admin: encodeAdminJson,
  vlist: (value, maxBytes) => encodeVlist(value as ValueReference[], maxBytes),
  site: encodeSite,
  key: encodePublicKey,
};

/**
 * Encodes JSON data as bytes; the format need not match the type. A bare string is short for format `string`.
 *
 * @throws RangeError or TypeError for JSON in no known format, LengthLimitError for more than `maxBytes`
 */
export function encodeData(data: unknown, maxBytes = Infinity): Buffer {
  if (typeof data === 'string') return encodeText(data, maxBytes);
  const { format, value } = data as ValueData;
  const encode = Object.hasOwn(ENCODERS, format) ? ENCODERS[format] : undefined;
  if (encode === undefined) throw new RangeError('an unknown data format');
  return encode(value, maxBytes);
}

const NONE = Buffer.alloc(0);

/** Returns a value's bytes; empty for unreadable data: an update that sends them back keeps the data (see `planWrite`). */
export const bytesOfValueData = (data: unknown): Buffer => tryDecode(encodeData, data) ?? NONE;

/** As `bytesOfValueData`; long lists in steps. */
export function* stepBytesOfValueData(data: unknown): Steps<Buffer> {
  const { format, value } = (data ?? {}) as Partial<ValueData>;
  try {
    if (format === 'vlist') return yield* stepVlist(value as ValueReference[]);
    if (format === 'site') return yield* stepSite(value as SiteJson);
    return encodeData(data);
  } catch {
    return NONE;
  }
}

function encodeText(value: unknown, maxBytes = Infinity): Buffer {
  const text = String(value);
  assertFits(text, maxBytes);
  return Buffer.from(text, 'utf8');
}

function encodeHex(value: unknown): Buffer {
  const digits = String(value);
  if (digits.length % 2 !== 0 || /[^0-9a-f]/i.test(digits)) throw new RangeError('not hexadecimal digits');
  return Buffer.from(digits, 'hex');
}

function encodeAdminJson(json: unknown): Buffer {
  const { handle, index, permissions, legacyByteLength } = json as AdminJson;
  return encodeAdmin({
    handle,
    index,
    permissions: parseInt(permissions, 2),
    legacy: legacyByteLength === true,
  });
}

const RELATIVE = 0;
const ABSOLUTE = 1;

/** Writes a value as on a Handle server (RFC 3651 §3.1). @throws for an unknown data format, LengthLimitError */
export function writeValue(writer: ByteWriter, value: HandleValue): void {
  const { index, type, data, permissions, ttl = DEFAULT_TTL_SECONDS, timestamp, references = [] } = value;
  const isRelative = typeof ttl === 'number';
  writer
    .int32(index)
    .int32(timestamp === undefined ? 0 : secondsOf(timestamp))
    .byte(isRelative ? RELATIVE : ABSOLUTE)
    .int32(isRelative ? ttl : secondsOf(ttl))
    .byte(parseInt(lastFourPermissions(permissions), 2))
    .sizedText(type);
  writer.sized(encodeData(data, writer.room));
  completeSteps(writeReferences(writer, references));
}

/** Converts a date to seconds since the epoch; 0, which is expired, for an invalid date. */
const secondsOf = (date: string): number => Math.floor(Date.parse(date) / 1000) || 0;

interface OwnFormat {
  types: RegExp;
  format: string;
  decode: (bytes: Buffer) => unknown;
}

/** Types that a Handle server decodes if their bytes are valid. */
const OWN_FORMATS: OwnFormat[] = [
  { types: /^HS_ADMIN(\..*)?$/, format: 'admin', decode: (bytes) => adminToJson(decodeAdmin(bytes)) },
  { types: /^HS_VLIST$/, format: 'vlist', decode: decodeVlist },
  { types: /^(HS_SITE|HS_SITE\.6|HS_SITE\.PREFIX|HS_NA_DELEGATE)$/, format: 'site', decode: decodeSite },
  { types: /^HS_PUBKEY$/, format: 'key', decode: decodePublicKey },
];

/** Decodes data as a Handle server does: in the type's format, else as text, else as base64. */
export function decodeData(type: string, bytes: Buffer): ValueData {
  const own = OWN_FORMATS.find(({ types }) => types.test(type));
  const decoded = own && tryDecode(own.decode, bytes);
  if (own && decoded !== undefined) return { format: own.format, value: decoded };
  if (isText(bytes)) return { format: 'string', value: bytes.toString('utf8') };
  return { format: 'base64', value: bytes.toString('base64') };
}

/** Whether the bytes are text, in which only the control bytes 9 to 19 are allowed (hdllib Util.looksLikeBinary). */
function isText(bytes: Buffer): boolean {
  const isControl = (byte: number): boolean => byte < 9 || (byte > 19 && byte < 32) || byte === 0x7f;
  return isUtf8(bytes) && !bytes.some(isControl);
}

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
  const handle = reader.sizedText();
  const index = reader.int32();
  if (reader.remaining !== 0 && reader.remaining !== 2) throw new RangeError('not an HS_ADMIN value');
  return { handle, index, permissions, legacy: reader.remaining === 2 };
}

export function encodeAdmin({ handle, index, permissions, legacy }: AdminData): Buffer {
  const writer = new ByteWriter().int16(permissions).sizedText(handle).int32(index);
  if (legacy) writer.int16(0);
  return writer.finish();
}

/** HS_ADMIN data in record interface JSON: twelve digits, highest bit first. */
interface AdminJson extends ValueReference {
  permissions: string;
  legacyByteLength?: boolean;
}

function adminToJson({ handle, index, permissions, legacy }: AdminData): AdminJson {
  const bits = permissions.toString(2).padStart(12, '0').slice(-12);
  return { handle, index, permissions: bits, ...(legacy && { legacyByteLength: true }) };
}

/** Decodes HS_VLIST data. @throws RangeError for bytes that are not HS_VLIST data */
export function decodeVlist(bytes: Buffer): ValueReference[] {
  return completeSteps(stepDecodeVlist(bytes, (handle, index) => ({ handle, index })));
}

/** As `decodeVlist`, in steps; returns the results of `create`. */
export function* stepDecodeVlist<T>(bytes: Buffer, create: (handle: string, index: number) => T): Steps<T[]> {
  const reader = new ByteReader(bytes);
  const entries = yield* reader.stepElements(() => create(reader.sizedText(), reader.int32()));
  if (reader.remaining !== 0) throw new RangeError('not an HS_VLIST value');
  return entries;
}

/** Encodes HS_VLIST data. @throws LengthLimitError for more than `maxBytes` */
export const encodeVlist = (entries: readonly ValueReference[], maxBytes?: number): Buffer =>
  completeSteps(stepVlist(entries, maxBytes));

function* stepVlist(entries: readonly ValueReference[], maxBytes?: number): Steps<Buffer> {
  const writer = new ByteWriter(maxBytes);
  yield* writeReferences(writer, entries);
  return writer.finish();
}

/** Writes HS_VLIST data, or a value's references, which have the same layout. */
const writeReferences = (writer: ByteWriter, entries: readonly ValueReference[]): Steps<void> =>
  writer.stepElements(entries, ({ handle, index }) => writer.sizedText(handle).int32(index));

interface KeyLayout {
  name: string;
  binaryOrder: readonly string[];
  /** Member order of the JSON Web Key in a Handle server's JSON. */
  jsonOrder: readonly string[];
  /** Four unused bytes that hdllib writes after an RSA key's numbers. */
  tail: Buffer;
}

const LAYOUTS: Record<string, KeyLayout> = {
  RSA: { name: 'RSA_PUB_KEY', binaryOrder: ['e', 'n'], jsonOrder: ['n', 'e'], tail: Buffer.alloc(4) },
  DSA: {
    name: 'DSA_PUB_KEY',
    binaryOrder: ['q', 'p', 'g', 'y'],
    jsonOrder: ['y', 'p', 'q', 'g'],
    tail: NONE,
  },
};

/** A JSON Web Key with base64url numbers. */
export type Jwk = Record<string, string>;

export function encodePublicKey(json: unknown): Buffer {
  const jwk = json as Jwk;
  const kty = jwk.kty ?? '';
  const layout = Object.hasOwn(LAYOUTS, kty) ? LAYOUTS[kty] : undefined;
  if (layout === undefined) throw new RangeError('a key that is neither RSA nor DSA');
  const writer = new ByteWriter().sizedText(layout.name).int16(0);
  for (const member of layout.binaryOrder) writer.sized(signed(jwk[member] ?? ''));
  return writer.bytes(layout.tail).finish();
}

/** Decodes a public key to a JSON Web Key. @throws RangeError for a key that is neither RSA nor DSA */
export function decodePublicKey(bytes: Buffer): Jwk {
  const reader = new ByteReader(bytes);
  const name = reader.sizedText();
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
function signed(base64url: unknown): Buffer {
  // For an object, `Buffer.from` would allocate any `length` that a client sends.
  if (typeof base64url !== 'string') throw new TypeError('a number of a key is not a string');
  const bytes = Buffer.from(base64url, 'base64url');
  return (bytes[0] ?? 0) > 0x7f ? Buffer.concat([Buffer.from([0]), bytes]) : bytes;
}

interface SiteInterface {
  query: boolean;
  admin: boolean;
  protocol: string;
  port: number;
}

export interface SiteServer {
  serverId: number;
  address: string;
  publicKey?: { format: string; value: unknown };
  interfaces: SiteInterface[];
}

/** A site in record interface JSON. */
export interface SiteJson {
  version: number;
  protocolVersion: string;
  serialNumber: number;
  primarySite: boolean;
  multiPrimary: boolean;
  /** Omitted for `HASH_BY_ALL`. */
  hashOption?: number;
  hashFilter?: string;
  attributes?: { name: string; value: string }[];
  servers: SiteServer[];
}

const PROTOCOLS = ['UDP', 'TCP', 'HTTP', 'HTTPS'];
const HASH_BY_ALL = 2;
const ADDRESS_BYTES = 16;
const PRIMARY = 0x80;
const MULTI_PRIMARY = 0x40;

/** Encodes a site. @throws TypeError or RangeError for JSON that is not a site, LengthLimitError */
export function encodeSite(json: unknown, maxBytes?: number): Buffer {
  return completeSteps(stepSite(json as SiteJson, maxBytes));
}

function* stepSite(site: SiteJson, maxBytes?: number): Steps<Buffer> {
  const writer = new ByteWriter(maxBytes);
  const [major = 0, minor = 0] = shortText(site.protocolVersion).split('.').map(Number);
  const primaryMask = (site.primarySite ? PRIMARY : 0) | (site.multiPrimary ? MULTI_PRIMARY : 0);
  writer.int16(site.version).byte(major).byte(minor).int16(site.serialNumber);
  writer.byte(primaryMask).byte(site.hashOption ?? HASH_BY_ALL);
  writer.sizedText(site.hashFilter ?? '');
  yield* writer.stepElements(site.attributes ?? [], ({ name, value }) =>
    writer.sizedText(name).sizedText(value),
  );
  writer.int32(site.servers.length);
  for (const [at, server] of site.servers.entries()) {
    yield* writeServer(writer, server);
    if ((at + 1) % GROUP_SIZE === 0) yield;
  }
  return writer.finish();
}

function* writeServer(
  writer: ByteWriter,
  { serverId, address, publicKey, interfaces }: SiteServer,
): Steps<void> {
  writer.int32(serverId).bytes(addressToBytes(shortText(address)));
  writer.sized(publicKey === undefined ? NONE : keyToBytes(publicKey));
  yield* writer.stepElements(interfaces, ({ query, admin, protocol, port }) =>
    writer
      .byte((admin ? 1 : 0) | (query ? 2 : 0))
      .byte(PROTOCOLS.indexOf(protocol))
      .int32(port),
  );
}

const keyToBytes = ({ format, value }: { format: string; value: unknown }): Buffer =>
  format === 'key' ? encodePublicKey(value) : Buffer.from(String(value), 'base64');

/** Maximum length of an address or a version; the longest IPv6 address has 45 characters, without a zone. */
const MAX_SHORT_TEXT = 64;

/** Returns a text that is split into parts. @throws RangeError for a long one, whose parts would need gigabytes */
function shortText(text: string): string {
  if (text.length > MAX_SHORT_TEXT) throw new RangeError('an address or a version that is too long');
  return text;
}

/** Encodes an address in 16 bytes, an IPv4 address in the last four. @throws RangeError for more bytes */
function addressToBytes(address: string): Buffer {
  const bytes = Buffer.alloc(ADDRESS_BYTES);
  if (isIPv4(address)) {
    bytes.set(address.split('.').map(Number), 12);
    return bytes;
  }
  const [head = [], tail = []] = address.split('::').map((text) => (text === '' ? [] : text.split(':')));
  const setGroup = (group: string, at: number): unknown =>
    bytes.writeUInt16BE(parseInt(group, 16) & 0xffff, at);
  head.forEach((group, at) => setGroup(group, 2 * at));
  tail.forEach((group, at) => setGroup(group, ADDRESS_BYTES - 2 * (tail.length - at)));
  return bytes;
}

/** @throws RangeError for bytes that are not a site */
export function decodeSite(bytes: Buffer): SiteJson {
  const reader = new ByteReader(bytes);
  const version = reader.int16();
  const protocolVersion = `${reader.byte()}.${reader.byte()}`;
  const serialNumber = reader.int16();
  const mask = reader.byte();
  const hashOption = reader.byte();
  const hashFilter = reader.sizedText();
  const attributes = reader.elements(() => ({ name: reader.sizedText(), value: reader.sizedText() }));
  return {
    version,
    protocolVersion,
    serialNumber,
    primarySite: (mask & PRIMARY) !== 0,
    multiPrimary: (mask & MULTI_PRIMARY) !== 0,
    ...(hashOption !== HASH_BY_ALL && { hashOption }),
    ...(hashFilter !== '' && { hashFilter }),
    attributes,
    servers: reader.elements(() => ({
      serverId: reader.int32(),
      address: bytesToAddress(reader.take(ADDRESS_BYTES)),
      publicKey: keyToJson(reader.sized()),
      interfaces: reader.elements(() => readSiteInterface(reader)),
    })),
  };
}

function readSiteInterface(reader: ByteReader): SiteServer['interfaces'][number] {
  const kind = reader.byte();
  const protocol = PROTOCOLS[reader.byte()];
  if (protocol === undefined) throw new RangeError('an interface without a known protocol');
  return { query: (kind & 2) !== 0, admin: (kind & 1) !== 0, protocol, port: reader.int32() };
}

function keyToJson(bytes: Buffer): { format: string; value: unknown } {
  const key = tryDecode(decodePublicKey, bytes);
  if (key === undefined) return { format: 'base64', value: bytes.toString('base64') };
  return { format: 'key', value: key };
}

function bytesToAddress(bytes: Buffer): string {
  if (bytes.subarray(0, 12).every((byte) => byte === 0)) return bytes.subarray(12).join('.');
  return Array.from({ length: 8 }, (_, group) => bytes.readUInt16BE(group * 2).toString(16)).join(':');
}

/** Encryption method, the first field of a file. The obsolete DES methods (0, 2, 3) are not supported. */
const METHOD = { none: 1, aes: 4 } as const;

/** Parameters used by CNRI's set-up tool: PBKDF2 with SHA-1, then AES-128 in CBC mode. */
const ITERATIONS = 10_000;
const KEY_BYTES = 16;
const SALT_BYTES = 16;
const IV_BYTES = 16;

const NUMBERS = ['n', 'e', 'd', 'p', 'q', 'dp', 'dq', 'qi'];

/** Encodes a private RSA key as a file, encrypted if an ASCII passphrase is given. */
export function privateKeyFile(key: Jwk, passphrase: string | undefined): Buffer {
  const writer = new ByteWriter().sizedText('RSA_PRIVCRT_KEY');
  for (const member of NUMBERS) writer.sized(signed(key[member]));
  const clear = writer.finish();
  if (passphrase !== undefined) return encrypt(clear, passphrase);
  return new ByteWriter().int32(METHOD.none).bytes(clear).finish();
}

function encrypt(clear: Buffer, passphrase: string): Buffer {
  const salt = randomBytes(SALT_BYTES);
  const iv = randomBytes(IV_BYTES);
  const key = pbkdf2Sync(passphrase, salt, ITERATIONS, KEY_BYTES, 'sha1');
  const cipher = createCipheriv('aes-128-cbc', key, iv);
  const encrypted = Buffer.concat([cipher.update(clear), cipher.final()]);
  const writer = new ByteWriter()
    .int32(METHOD.aes)
    .sized(salt)
    .int32(ITERATIONS)
    .int32(KEY_BYTES * 8);
  return writer.sized(iv).sized(encrypted).finish();
}
