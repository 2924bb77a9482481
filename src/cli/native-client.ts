// Resolves a handle over the native protocol, as Java programs do.
import { createSocket } from 'node:dgram';
import { on, once } from 'node:events';
import { connect } from 'node:net';
import { RESPONSE_CODE } from '../handle/outcome.js';
import { decodeResponse, encodeResolution } from '../plugins/native/client-codec.js';
import {
  ENVELOPE_BYTES,
  MAX_MESSAGE_BYTES,
  type NativeMessage,
  OP_CODE,
  OP_FLAG,
  OWN_VERSION,
  UNKNOWN_SERIAL,
  decodeEnvelope,
  encodeMessage,
  frame,
  readMessage,
} from '../plugins/native/codec.js';
import { Failure } from './terminal.js';

const TIMEOUT_MS = 10_000;

/** Resolves the public values of a handle at `tcp://host:port` or `udp://host:port`. */
export async function readNatively(
  address: string,
  handle: string,
): Promise<{ text: string; note: string; isFound: boolean }> {
  const { protocol, hostname, port } = new URL(address);
  const target = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) };
  const exchange = protocol === 'udp:' ? exchangeUdp : exchangeTcp;
  const message = await exchange(requestFor(handle), target).catch((cause: unknown) => {
    throw new Failure(`no response from ${address}: ${(cause as Error).message}`);
  });
  const { responseCode, flags } = message.header;
  const hasDigest = (flags & OP_FLAG.returnDigest) !== 0;
  const response = decodeResponse(message, { hasDigest });
  if (!response.ok) throw new Failure(`invalid response from ${address}: ${response.problem}`);
  const { body } = response.value;
  const details =
    body.kind === 'record' ? { values: body.values } : body.kind === 'text' ? { message: body.text } : {};
  return {
    text: JSON.stringify({ responseCode, handle, ...details }),
    note: `response code ${responseCode} over ${protocol === 'udp:' ? 'UDP' : 'TCP'}`,
    isFound: responseCode === RESPONSE_CODE.success,
  };
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
  const envelope = {
    version: OWN_VERSION,
    suggested: OWN_VERSION,
    ...flags,
    sessionId: 0,
    requestId: 1,
    sequence: 0,
  };
  return frame(envelope, encodeMessage({ header, body, credential: Buffer.alloc(0) }));
}

interface ListenerAddress {
  host: string;
  port: number;
}

async function exchangeTcp(request: Buffer, target: ListenerAddress): Promise<NativeMessage> {
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
async function exchangeUdp(request: Buffer, { host, port }: ListenerAddress): Promise<NativeMessage> {
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4');
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  try {
    socket.connect(port, host);
    await once(socket, 'connect', { signal });
    socket.send(request);
    const packets = new Map<number, Buffer>();
    let received = 0;
    for await (const [packet] of on(socket, 'message', { signal }) as AsyncIterable<[Buffer]>) {
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
