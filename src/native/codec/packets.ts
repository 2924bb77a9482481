// A message in UDP packets of 512 bytes (RFC 3652 §2.1.2: TruncatedMessage, SequenceNumber).
import { type Envelope, ENVELOPE_BYTES, encodeEnvelope } from './envelope.js';

/** Bytes of a message in one packet, without its envelope. */
export const PACKET_BYTES = 492;
export const FULL_PACKET_BYTES = ENVELOPE_BYTES + PACKET_BYTES;

export const packetsOf = (length: number): number => Math.max(1, Math.ceil(length / PACKET_BYTES));

/** Every packet has the envelope, with the length of the whole message; all but the last are full. */
export function toPackets(
  envelope: Omit<Envelope, 'length' | 'sequence' | 'isTruncated'>,
  message: Buffer,
): Buffer[] {
  const count = packetsOf(message.length);
  return Array.from({ length: count }, (_, sequence) => {
    const start = sequence * PACKET_BYTES;
    const head = { ...envelope, isTruncated: count > 1, sequence, length: message.length };
    return Buffer.concat([encodeEnvelope(head), message.subarray(start, start + PACKET_BYTES)]);
  });
}
