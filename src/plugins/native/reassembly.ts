// Reassembles fragmented UDP requests (RFC 3652 §2.1.2).
import { type Envelope, ENVELOPE_BYTES, PACKET_BYTES, packetsOf } from './codec.js';
/** Timeout from the first packet of an incomplete request (ms), as on a Handle server. */
const LIFE_MS = 5000;

/** Maximum total bytes of incomplete requests; above it, the oldest are dropped. */
const MAX_TOTAL_BYTES = 4 * 1024 * 1024;

/** Estimated overhead per packet for map entry, buffer and object (bytes). */
const OVERHEAD_BYTES = 200;

interface Incomplete {
  since: number;
  /** Received packets by sequence number; missing packets use no memory. */
  packets: Map<number, Buffer>;
  bytes: number;
}

/**
 * A complete message; `incomplete` while packets are missing; `invalid` for a packet
 * that does not match its message.
 */
type Reassembled = { message: Buffer } | 'incomplete' | 'invalid';

export class Reassembly {
  readonly #incomplete = new Map<string, Incomplete>();
  #totalBytes = 0;

  /**
   * Adds a packet, in any order. `client` is an address without port, as on a Handle
   * server. Ignores duplicates.
   */
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
