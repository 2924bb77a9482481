// Creates native and HTTP callers on plain sockets, each with one request in flight.
import { type Socket as UdpSocket, createSocket } from 'node:dgram';
import { type Socket, connect } from 'node:net';
import { ENVELOPE_BYTES, decodeEnvelope } from '../../../src/plugins/native/codec.js';
import { nativeRequest } from '../../support/native-messages.js';
import { targetPath } from '../records.js';

export const WIRES = ['http', 'http-close', 'native-tcp', 'native-udp', 'native-tunnel'] as const;
/** `http` and `native-tunnel` reuse connections; `http-close` and `native-tcp` open one per request. */
export type Wire = (typeof WIRES)[number];

export interface Caller {
  ask: () => void;
  close: () => void;
}

export interface CallerOptions {
  wire: Wire;
  port: number;
  handle: string;
  /** Called with the parts of a response that are identical in all correct responses. */
  onAnswer: (answer: Buffer) => void;
  /** Called after a connection error or a lost response. */
  onBroken: () => void;
}

export function createCaller(options: CallerOptions): Caller {
  return options.wire === 'native-udp' ? createUdpCaller(options) : createStreamCaller(options);
}

/** @throws Error if no response arrives */
export function askOnce(options: Pick<CallerOptions, 'wire' | 'port' | 'handle'>): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const settle = (end: () => void): void => {
      caller.close();
      end();
    };
    const caller = createCaller({
      ...options,
      onAnswer: (answer) => {
        settle(() => {
          resolve(answer);
        });
      },
      onBroken: () => {
        settle(() => {
          reject(new Error(`${options.wire}: no answer`));
        });
      },
    });
    caller.ask();
  });
}

const LOOPBACK = '127.0.0.1';
/** Timeout after which a datagram counts as lost. */
const LOST_MS = 1000;

function createStreamCaller({ wire, port, handle, onAnswer, onBroken }: CallerOptions): Caller {
  const isKept = wire === 'http' || wire === 'native-tunnel';
  const readAnswer = wire === 'native-tcp' ? readNative : wire === 'native-tunnel' ? readTunnel : readHttp;
  const request = requestOf(wire, handle);
  let socket: Socket | undefined;
  let received: Buffer = Buffer.alloc(0);
  const drop = (): void => {
    socket?.removeAllListeners().on('error', () => undefined);
    socket?.destroy();
    socket = undefined;
  };
  const onData = (chunk: Buffer): void => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
    const answer = readAnswer(received);
    if (answer === undefined) return;
    received = Buffer.alloc(0);
    if (!isKept) drop();
    onAnswer(answer);
  };
  const onEnd = (): void => {
    drop();
    received = Buffer.alloc(0);
    onBroken();
  };
  const open = (): Socket => {
    const opened = connect({ port, host: LOOPBACK, noDelay: true });
    return opened.on('data', onData).once('error', onEnd).once('end', onEnd);
  };
  return {
    ask: () => (socket ??= open()).write(request),
    close: drop,
  };
}

function createUdpCaller({ port, handle, onAnswer, onBroken }: CallerOptions): Caller {
  const request = nativeRequest(handle);
  const socket: UdpSocket = createSocket('udp4');
  const packets = new Map<number, Buffer>();
  const lost = setTimeout(onBroken, LOST_MS);
  const send = (): void => {
    packets.clear();
    lost.refresh();
    // Fails immediately if nothing listens, which also counts as a lost datagram.
    socket.send(request, () => undefined);
  };
  socket.on('message', (packet: Buffer) => {
    packets.set(decodeEnvelope(packet).sequence, packet);
    const answer = assemble(packets);
    if (answer !== undefined) onAnswer(withoutExpiration(answer));
  });
  socket.on('error', () => undefined);
  let isConnected = false;
  socket.connect(port, LOOPBACK, () => {
    isConnected = true;
    send();
  });
  return {
    // The `connect` callback sends the first request.
    ask: () => {
      if (isConnected) send();
    },
    close: () => {
      clearTimeout(lost);
      socket.close();
    },
  };
}

function requestOf(wire: Wire, handle: string): Buffer {
  if (wire === 'native-tcp') return nativeRequest(handle);
  return wire === 'native-tunnel' ? tunnelRequest(handle) : httpRequest(handle, wire === 'http');
}

/** Returns a tunnelled request as the Java client sends it. */
function tunnelRequest(handle: string): Buffer {
  const message = nativeRequest(handle);
  const type = 'application/x-hdl-message';
  const lines = [
    `POST /${encodeURIComponent(handle)} HTTP/1.1`,
    `Host: ${LOOPBACK}`,
    `Accept: ${type}`,
    'User-Agent: CNRI-HCL 2.0',
    `Content-Type: ${type}`,
    `Content-Length: ${message.length}`,
  ];
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), message]);
}

function httpRequest(handle: string, isKept: boolean): Buffer {
  const connection = isKept ? '' : 'Connection: close\r\n';
  return Buffer.from(`GET ${targetPath(handle)} HTTP/1.1\r\nHost: ${LOOPBACK}\r\n${connection}\r\n`);
}

/** Returns status line and body, without headers, because `Date` and `Age` vary. */
function readHttp(bytes: Buffer): Buffer | undefined {
  const body = bodyOf(bytes);
  return body && Buffer.concat([bytes.subarray(0, bytes.indexOf('\n') + 1), body]);
}

function readTunnel(bytes: Buffer): Buffer | undefined {
  const body = bodyOf(bytes);
  return body && readNative(body);
}

/** Returns the body of an HTTP response; undefined while it is incomplete. */
function bodyOf(bytes: Buffer): Buffer | undefined {
  const end = bytes.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const head = bytes.toString('latin1', 0, end);
  const from = end + 4;
  const length = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0);
  return bytes.length < from + length ? undefined : bytes.subarray(from, from + length);
}

function readNative(bytes: Buffer): Buffer | undefined {
  if (bytes.length < ENVELOPE_BYTES) return undefined;
  const { length } = decodeEnvelope(bytes);
  if (bytes.length < ENVELOPE_BYTES + length) return undefined;
  return withoutExpiration(bytes.subarray(ENVELOPE_BYTES, ENVELOPE_BYTES + length));
}

function assemble(packets: ReadonlyMap<number, Buffer>): Buffer | undefined {
  const parts = [...packets.values()];
  const [one] = parts;
  if (one === undefined) return undefined;
  const { length } = decodeEnvelope(one);
  const bytes = parts.reduce((sum, part) => sum + part.length - ENVELOPE_BYTES, 0);
  if (bytes < length) return undefined;
  const inOrder = Array.from({ length: parts.length }, (_, at) => packets.get(at) ?? Buffer.alloc(0));
  return Buffer.concat(inOrder.map((part) => part.subarray(ENVELOPE_BYTES)));
}

/** Byte range of the expiration time in a message header (RFC 3652 §2.2.2). */
const EXPIRATION = { from: 16, to: 20 };

const withoutExpiration = (message: Buffer): Buffer =>
  Buffer.from(message).fill(0, EXPIRATION.from, EXPIRATION.to);
