// The addresses that have asked over TCP, whose handshake a forged sender cannot complete.
import { LRUCache } from 'lru-cache';
import { plainAddress } from '../server/client-address.js';

const MAX_ADDRESSES = 100_000;
const LIFE_MS = 60 * 60 * 1000;

interface ProvedSenders {
  add: (address: string) => void;
  has: (address: string) => boolean;
}

export function createProvedSenders(now: () => number): ProvedSenders {
  const addresses = new LRUCache<string, true>({
    max: MAX_ADDRESSES,
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
