// Parses the header of the PROXY protocol, version 1 (text) or 2 (binary), as in HAProxy's proxy-protocol.txt.
import { SocketAddress, isIPv4, isIPv6 } from 'node:net';

export interface ProxyHeader {
  /** Bytes of the header; what follows belongs to the client. */
  length: number;
  /** Address of the client; undefined if the balancer itself has opened the connection, or knows no address. */
  client: string | undefined;
}

/** Parses the bytes received so far. More bytes never change a header or `invalid`. */
export function parseProxyHeader(received: Buffer): ProxyHeader | 'incomplete' | 'invalid' {
  if (agrees(received, SIGNATURE)) return parseBinary(received);
  return agrees(received, TEXT_START) ? parseText(received) : 'invalid';
}

const TEXT_START = Buffer.from('PROXY ');
const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n');

/** Whether the bytes begin as expected, as far as they go. */
function agrees(received: Buffer, expected: Buffer): boolean {
  const length = Math.min(received.length, expected.length);
  return received.compare(expected, 0, length, 0, length) === 0;
}

/** Maximum length with CRLF (§2.1). */
const MAX_TEXT = 107;

const UNKNOWN = /^PROXY UNKNOWN(?: .*)?$/;
const TCP = /^PROXY TCP([46]) ([\dA-Fa-f:.]+) ([\dA-Fa-f:.]+) (0|[1-9]\d{0,4}) (0|[1-9]\d{0,4})$/;

function parseText(received: Buffer): ProxyHeader | 'incomplete' | 'invalid' {
  const end = received.subarray(0, MAX_TEXT).indexOf('\r\n');
  if (end === -1) return received.length < MAX_TEXT ? 'incomplete' : 'invalid';
  const line = received.toString('latin1', 0, end);
  const length = end + 2;
  if (UNKNOWN.test(line)) return { length, client: undefined };
  const client = textAddress(line);
  return client === undefined ? 'invalid' : { length, client };
}

function textAddress(line: string): string | undefined {
  const [, family, client = '', server = '', ...ports] = TCP.exec(line) ?? [];
  const isAddress = family === '4' ? isIPv4 : isIPv6;
  const isValid = isAddress(client) && isAddress(server) && ports.every((port) => Number(port) <= 65_535);
  return isValid ? oneSpelling(client) : undefined;
}

/** Signature, command, family and the length of the rest (§2.2). */
const FIXED_BYTES = 16;
/** Maximum length with additional fields, of which a certificate name and a host name are the longest. */
const MAX_BINARY = 2048;
const LOCAL = 0x20;
const PROXY = 0x21;
const TCP4 = 0x11;
const TCP6 = 0x21;

/** Bytes of the addresses and ports by family: none, IPv4, IPv6, and a Unix socket, which has no network address. */
const ADDRESS_BYTES: ReadonlyMap<number, number> = new Map([
  [0x00, 0],
  [TCP4, 12],
  [TCP6, 36],
  [0x31, 216],
]);

function parseBinary(received: Buffer): ProxyHeader | 'incomplete' | 'invalid' {
  if (received.length < FIXED_BYTES) return 'incomplete';
  const [command, family] = [received.readUInt8(12), received.readUInt8(13)];
  const length = FIXED_BYTES + received.readUInt16BE(14);
  // LOCAL is valid with any family, which is ignored.
  const needed = command === LOCAL ? 0 : ADDRESS_BYTES.get(family);
  const isKnown = command === LOCAL || command === PROXY;
  if (!isKnown || needed === undefined || length < FIXED_BYTES + needed || length > MAX_BINARY)
    return 'invalid';
  if (received.length < length) return 'incomplete';
  return { length, client: command === LOCAL ? undefined : binaryAddress(family, received) };
}

function binaryAddress(family: number, header: Buffer): string | undefined {
  const at = (length: number): Buffer => header.subarray(FIXED_BYTES, FIXED_BYTES + length);
  if (family === TCP4) return at(4).join('.');
  if (family !== TCP6) return undefined;
  return oneSpelling(at(16).toString('hex').match(/.{4}/g)?.join(':') ?? '');
}

/** Returns one spelling of an address (RFC 5952), because limits compare addresses as text. */
const oneSpelling = (address: string): string =>
  address.includes(':') ? new SocketAddress({ address, family: 'ipv6' }).address : address;
