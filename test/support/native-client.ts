// A native protocol client that behaves like the Java client: one request per TCP connection; UDP packets in
// any order, assembled by sequence number and length.
import { type Socket as UdpSocket, createSocket } from 'node:dgram';
import { once } from 'node:events';
import { type Socket, connect } from 'node:net';
import { onTestFinished } from 'vitest';
import { ENVELOPE_BYTES, decodeEnvelope } from '../../src/plugins/native/codec.js';
import { type NativeQuestion, type NativeResponse, nativeRequest, readResponse } from './native-messages.js';

/** Opens a connection that stays half-open after the peer's end; closes it when the test ends. */
export async function openNativeSocket(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  socket.on('error', () => undefined);
  onTestFinished(() => {
    socket.destroy();
  });
  await once(socket, 'connect');
  return socket;
}

/** Reads until the peer ends or resets the connection. */
export async function readToEnd(socket: Socket): Promise<Buffer> {
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  await new Promise((resolve) => socket.once('end', resolve).once('close', resolve));
  return Buffer.concat(chunks);
}

/** Sends the pieces, and reads to the end of the connection. */
export async function exchangeTcp(
  port: number,
  pieces: readonly Buffer[],
  { isEnded = false } = {},
): Promise<Buffer> {
  const socket = await openNativeSocket(port);
  const received = readToEnd(socket);
  for (const piece of pieces) await new Promise((resolve) => socket.write(piece, resolve));
  if (isEnded) socket.end();
  const answer = await received;
  socket.destroy();
  return answer;
}

export async function askTcp(
  port: number,
  handle: string,
  question: NativeQuestion = {},
): Promise<NativeResponse> {
  return readResponse(await exchangeTcp(port, [nativeRequest(handle, question)]));
}

/** Opens a bound UDP socket, and closes it when the test ends. */
export async function openUdp(): Promise<UdpSocket> {
  const socket = createSocket('udp4');
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  let isOpen = true;
  socket.once('close', () => (isOpen = false));
  onTestFinished(() => {
    if (isOpen) socket.close();
  });
  return socket;
}

export const sendUdp = (socket: UdpSocket, port: number, packet: Buffer): void => {
  socket.send(packet, port, '127.0.0.1');
};

/** Returns the packets of the next complete message, in order of arrival. */
export function nextMessage(socket: UdpSocket): Promise<Buffer[]> {
  const packets = new Map<number, Buffer>();
  return new Promise((resolve) => {
    const onMessage = (packet: Buffer): void => {
      const { sequence, length } = decodeEnvelope(packet);
      packets.set(sequence, packet);
      const received = [...packets.values()].reduce(
        (sum, { length: bytes }) => sum + bytes - ENVELOPE_BYTES,
        0,
      );
      if (received < length) return;
      socket.off('message', onMessage);
      resolve([...packets.values()]);
    };
    socket.on('message', onMessage);
  });
}

export async function exchangeUdp(port: number, packets: readonly Buffer[]): Promise<Buffer[]> {
  const socket = await openUdp();
  const answer = nextMessage(socket);
  for (const packet of packets) sendUdp(socket, port, packet);
  return answer;
}
