// Resolves a handle over the native protocol, as Java programs do.
import { createSocket } from 'node:dgram';
import { on, once } from 'node:events';
import { connect } from 'node:net';
import type { HostAndPort } from '../config/addresses.js';
import { valueToJson } from '../dev-server/value.js';
import { ByteReader, ByteWriter } from '../handle/bytes.js';
import { RESPONSE_CODE } from '../handle/outcome.js';
import { type HandleValue, type Ttl, isoSeconds } from '../handle/value.js';
import {
  decoded,
  decodeEnvelope,
  encodeMessage,
  ENVELOPE_BYTES,
  frame,
  MAX_MESSAGE_BYTES,
  type NativeMessage,
  OP_CODE,
  OP_FLAG,
  OWN_VERSION,
  readMessage,
  type ResolutionRequest,
  UNKNOWN_SERIAL,
} from '../plugins/native/codec.js';
import { Failure } from './terminal.js';

const TIMEOUT_MS = 10_000;

/** Resolves the public values of a handle at `tcp://host:port` or `udp://host:port`. */
export async function readNatively(
  address: string,
  handle: string,
): Promise<{ text: string; note: string; failure: string | undefined }> {
  const { protocol, hostname, port } = new URL(address);
  const target = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) };
  const exchange = protocol === 'udp:' ? exchangeUdp : exchangeTcp;
  const message = await exchange(requestFor(handle), target).catch((cause: unknown) => {
    throw new Failure(`no response from ${address}: ${(cause as Error).message}`);
  });
  const { responseCode } = message.header;
  const details = decoded(() => readDetails(message));
  if (!details.ok) throw new Failure(`invalid response from ${address}: ${details.problem}`);
  const note = `response code ${responseCode} over ${protocol === 'udp:' ? 'UDP' : 'TCP'}`;
  const text = JSON.stringify({ responseCode, handle, ...details.value });
  return { text, note, failure: responseCode === RESPONSE_CODE.success ? undefined : note };
}

function requestFor(handle: string): Buffer {
  const header = {
    opCode: OP_CODE.resolution,
    responseCode: 0,
    flags: OP_FLAG.recursive | OP_FLAG.publicOnly,
    siteSerial: UNKNOWN_SERIAL,
    recursionCount: 0,
    expiration: 0,
  };
  const body = encodeResolution({ handle: Buffer.from(handle), indexes: [], types: [] });
  const flags = { isCompressed: false, isEncrypted: false, isTruncated: false };
  const ids = { sessionId: 0, requestId: 1, sequence: 0 };
  const envelope = { version: OWN_VERSION, suggested: OWN_VERSION, ...flags, ...ids };
  return frame(envelope, encodeMessage({ header, body, credential: Buffer.alloc(0) }));
}

async function exchangeTcp(request: Buffer, target: HostAndPort): Promise<NativeMessage> {
  const socket = connect({ ...target, signal: AbortSignal.timeout(TIMEOUT_MS) });
  try {
    socket.write(request);
    let received = Buffer.alloc(0);
    for await (const chunk of socket) {
      received = Buffer.concat([received, chunk as Buffer]);
      if (received.length > MAX_MESSAGE_BYTES + ENVELOPE_BYTES) throw new Error('response too long');
      if (received.length < ENVELOPE_BYTES) continue;
      const { length } = decodeEnvelope(received);
      const message = received.subarray(ENVELOPE_BYTES);
      if (message.length >= length) return readMessage(message);
    }
    throw new Error('connection closed');
  } finally {
    socket.destroy();
  }
}

/** Sends the request once, so a lost packet causes a timeout. Response packets may arrive in any order. */
async function exchangeUdp(request: Buffer, { host, port }: HostAndPort): Promise<NativeMessage> {
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4');
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  try {
    socket.connect(port, host);
    await once(socket, 'connect', { signal });
    socket.send(request);
    const packets = new Map<number, Buffer>();
    let received = 0;
    for await (const [packet] of on(socket, 'message', { signal }) as AsyncIterable<[Buffer]>) {
      if (packet.length <= ENVELOPE_BYTES) continue;
      const { sequence, length } = decodeEnvelope(packet);
      if (packets.has(sequence)) continue;
      packets.set(sequence, packet.subarray(ENVELOPE_BYTES));
      received += packet.length - ENVELOPE_BYTES;
      if (received > MAX_MESSAGE_BYTES) break;
      if (received < length) continue;
      const ordered = [...packets].sort(([one], [other]) => one - other);
      return readMessage(Buffer.concat(ordered.map(([, bytes]) => bytes)));
    }
    throw new Error('response too long');
  } finally {
    socket.close();
  }
}

// The client side of the native protocol (RFC 3652 §3.2): encodes resolutions, and reads responses with their values.

export function encodeResolution({ handle, indexes, types }: ResolutionRequest): Buffer {
  const writer = new ByteWriter().sized(handle).int32(indexes.length);
  for (const index of indexes) writer.int32(index);
  writer.int32(types.length);
  for (const type of types) writer.sizedText(type);
  return writer.finish();
}

/** Digest lengths by code: MD5 (two codes), SHA-1, SHA-256. */
const DIGEST_BYTES = new Map([
  [0, 16],
  [1, 16],
  [2, 20],
  [3, 32],
]);

export function takeDigest(reader: ByteReader): Buffer {
  const code = reader.byte();
  const bytes = DIGEST_BYTES.get(code);
  if (bytes === undefined) throw new RangeError('an unknown digest algorithm');
  return Buffer.concat([Buffer.of(code), reader.take(bytes)]);
}

/**
 * Returns the members besides the code, of which challenges, referrals and other operations have none. A server that
 * could not read the request refuses without its operation. @throws RangeError for an invalid response
 */
function readDetails({ header: { opCode, responseCode, flags }, body }: NativeMessage): object {
  const reader = new ByteReader(body);
  if ((flags & OP_FLAG.returnDigest) !== 0) takeDigest(reader);
  const { success, authenticationNeeded, serviceReferral, prefixReferral } = RESPONSE_CODE;
  switch (responseCode) {
    case success:
      if (opCode !== OP_CODE.resolution) return {};
      return { handle: reader.sizedText(), values: takeValues(reader) };
    case authenticationNeeded:
    case serviceReferral:
    case prefixReferral:
      return {};
    default:
      return { message: reader.sizedText() };
  }
}

/** Reads the values after a handle, of which there may be none. */
export const takeValues = (reader: ByteReader): HandleValue[] =>
  reader.remaining === 0 ? [] : reader.elements(() => takeValue(reader));

const ABSOLUTE = 1;

/** Reads a value, whose fields have the order of the bytes, into JSON as a Handle server writes it. */
export const takeValue = (reader: ByteReader): HandleValue =>
  valueToJson({
    index: reader.int32(),
    timestampSeconds: reader.int32(),
    ttl: takeTtl(reader),
    permissions: (reader.byte() & 0x0f).toString(2).padStart(4, '0'),
    type: reader.sizedText(),
    data: reader.sized(),
    references: reader.elements(() => ({ handle: reader.sizedText(), index: reader.int32() })),
  });

function takeTtl(reader: ByteReader): Ttl {
  const kind = reader.byte();
  const seconds = reader.int32();
  return kind === ABSOLUTE ? isoSeconds(seconds) : seconds;
}
