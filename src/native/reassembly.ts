// Puts requests together that come in several UDP packets (RFC 3652 §2.1.2).
import { type Envelope, ENVELOPE_BYTES, PACKET_BYTES, packetsOf } from './codec.js';
/** A Handle server forgets an incomplete request this long after its first packet. */
const LIFE_MS = 5000;

/** Of all incomplete requests. Beyond it the oldest is forgotten. */
const MAX_TOTAL_BYTES = 4 * 1024 * 1024;

/** Map, buffer and object of a packet. */
const OVERHEAD_BYTES = 200;

interface Incomplete {
  since: number;
  /** By sequence. Only what came is kept: a first packet reserves nothing for the rest. */
  packets: Map<number, Buffer>;
  bytes: number;
}

/** A whole message, nothing as long as packets are missing, or a packet that fits no message. */
type Reassembled = { message: Buffer } | 'incomplete' | 'invalid';

export class Reassembly {
  readonly #incomplete = new Map<string, Incomplete>();
  #totalBytes = 0;

  /** `client`: an address without port, as a Handle server does; order and duplicates do not matter. */
  add(client: string, { requestId, length, sequence }: Envelope, packet: Buffer, now: number): Reassembled {
    const count = packetsOf(length);
    const part = packet.subarray(ENVELOPE_BYTES);
    const expected = sequence === count - 1 ? length - sequence * PACKET_BYTES : PACKET_BYTES;
    if (sequence < 0 || sequence >= count || part.length < expected) return 'invalid';
    this.#forgetOld(now);
    const key = `${client} ${requestId} ${length}`;
    const request: Incomplete = this.#incomplete.get(key) ?? { since: now, packets: new Map(), bytes: 0 };
    if (!request.packets.has(sequence)) {
      const bytes = expected + OVERHEAD_BYTES;
      request.packets.set(sequence, part.subarray(0, expected));
      request.bytes += bytes;
      this.#totalBytes += bytes;
    }
    this.#incomplete.set(key, request);
    if (request.packets.size < count) {
      this.#boundMemory();
      return 'incomplete';
    }
    this.#forget(key, request);
    const inOrder = Array.from({ length: count }, (_, at) => request.packets.get(at) ?? Buffer.alloc(0));
    return { message: Buffer.concat(inOrder) };
  }

  #forgetOld(now: number): void {
    for (const [key, request] of this.#incomplete) {
      if (now - request.since < LIFE_MS) return;
      this.#forget(key, request);
    }
  }

  #boundMemory(): void {
    for (const [key, request] of this.#incomplete) {
      if (this.#totalBytes <= MAX_TOTAL_BYTES) return;
      this.#forget(key, request);
    }
  }

  #forget(key: string, { bytes }: Incomplete): void {
    this.#incomplete.delete(key);
    this.#totalBytes -= bytes;
  }
}
