// Native protocol messages recorded from a Handle server 9.3.1, HDLProxy and the Java client.
import { readFileSync } from 'node:fs';
import { ENVELOPE_BYTES, decodeEnvelope } from '../../src/plugins/native/codec.js';

export interface NativeExchange {
  name: string;
  transport: 'tcp' | 'udp' | 'http';
  /**
   * Hexadecimal bytes: one string per UDP packet, otherwise a single string; empty if no message was sent or
   * returned.
   */
  request: string[];
  response: string[];
  httpRequest?: { line: string; headers: [name: string, value: string][] };
  httpResponse?: { status: number; headers: [name: string, value: string][] };
}

type JsonAnswer = [status: number, body: string];

interface Recorded {
  /** JSON responses of the same server: plain, and with `publicOnly=false` if that differs. */
  records: Record<string, [plain: JsonAnswer, all?: JsonAnswer]>;
  exchanges: NativeExchange[];
  /** Messages from Java clients, including messages that no server sends. */
  clients: { name: string; packets: string[] }[];
}

const fixture = new URL('../fixtures/native.json', import.meta.url);
export const native = JSON.parse(readFileSync(fixture, 'utf8')) as Recorded;

export const bytesOf = (hex: string): Buffer => Buffer.from(hex, 'hex');

/** Assembles a message from packets in any order; returns undefined if a packet is missing. */
export function assembled(packets: readonly string[]): Buffer | undefined {
  const bytes = packets.map(bytesOf);
  if (bytes.length === 0 || bytes.some(({ length }) => length < ENVELOPE_BYTES)) return undefined;
  const parts = new Map(bytes.map((packet) => [decodeEnvelope(packet).sequence, packet]));
  const inOrder = [...parts].sort(([one], [other]) => one - other).map(([, packet]) => packet);
  const message = Buffer.concat(inOrder.map((packet) => packet.subarray(ENVELOPE_BYTES)));
  return message.length === decodeEnvelope(inOrder[0]!).length ? message : undefined;
}
