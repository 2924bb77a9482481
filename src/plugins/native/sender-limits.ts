// Limits UDP senders: one packet for unproved addresses, and bytes per second per network.
import { LRUCache } from 'lru-cache';
import { plainAddress, networkOf } from '../../server/client-address.js';

// Addresses proved by a TCP request, whose handshake a forged sender cannot complete.

const MAX_ADDRESSES = 100_000;
const LIFE_MS = 60 * 60 * 1000;

interface ProvedSenders {
  add: (address: string) => void;
  has: (address: string) => boolean;
}

export function createProvedSenders(now: () => number): ProvedSenders {
  const addresses = new LRUCache<string, true>({
    // The `max` option would preallocate memory for all addresses.
    maxSize: MAX_ADDRESSES,
    sizeCalculation: () => 1,
    ttl: LIFE_MS,
    ttlResolution: 0,
    perf: { now },
  });
  return {
    add(address) {
      addresses.set(plainAddress(address), true);
    },
    has: (address) => addresses.has(plainAddress(address)),
  };
}

// Response rate limiting per network, as in DNS servers, because UDP sender addresses can be forged.

/** Every second request above the limit gets code 2, which makes honest clients switch to TCP. */
const SLIP = 2;

/** Maximum counters per second; further networks share one counter. */
const MAX_NETWORKS = 65_536;

export type LimitVerdict = 'answer' | 'slip' | 'drop';

interface SentBytes {
  bytes: number;
  /** Requests above the limit. */
  refused: number;
}

/** Limits bytes per network and second. */
export class AnswerLimit {
  readonly #bytesPerSecond: number;
  #sent = new Map<string, SentBytes>();
  #second = 0;

  /** `bytesPerSecond` 0 disables the limit. */
  constructor(bytesPerSecond: number) {
    this.#bytesPerSecond = bytesPerSecond;
  }

  judge(address: string, now: number): LimitVerdict {
    if (this.#bytesPerSecond === 0) return 'answer';
    const second = Math.floor(now / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#sent = new Map();
    }
    const sent = this.#sentTo(address);
    if (sent.bytes < this.#bytesPerSecond) return 'answer';
    return ++sent.refused % SLIP === 1 ? 'slip' : 'drop';
  }

  /** Counts bytes sent to an address. */
  count(address: string, bytes: number): void {
    if (this.#bytesPerSecond > 0) this.#sentTo(address).bytes += bytes;
  }

  #sentTo(address: string): SentBytes {
    const network = floodedNetworkOf(address);
    const known =
      this.#sent.get(network) ?? (this.#sent.size < MAX_NETWORKS ? undefined : this.#sent.get(''));
    if (known !== undefined) return known;
    const sent = { bytes: 0, refused: 0 };
    this.#sent.set(this.#sent.size < MAX_NETWORKS - 1 ? network : '', sent);
    return sent;
  }
}

/** Returns the network that a response flood would saturate: IPv4 /24 or IPv6 /48. */
const floodedNetworkOf = (address: string): string =>
  networkOf(address).replace(/:[\da-f]{1,4}::\/56$/, '::/48');
