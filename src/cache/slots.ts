// Where memory keeps its entries: a list with an end, from which the least recently used ones leave.
import { LRUCache } from 'lru-cache';
import type { Entry } from './entry.js';

export interface Slot {
  entry: Entry;
  hits: number;
  /** The moment from which on sweeps have still to be applied. */
  since: number;
  /** Evicted, forgotten or replaced. */
  isGone: boolean;
  /** The era of its last use that its list knows of. */
  era: number;
}

/** The place of an entry, for who asks for the same key again and again. */
export type Held = Pick<Slot, 'entry'>;

export type Slots = LRUCache<string, Slot>;

/**
 * What an entry takes of the process beside key and values: 290 bytes live, and the room that V8 lets garbage take.
 * A record of 694 bytes took between 1,400 and 1,750 bytes of RSS, by how long ago V8 had collected, of which 1,354
 * are counted: so the bound is one for the process.
 */
const OVERHEAD_BYTES = 700;

export function createSlots({ maxBytes, onEvict }: { maxBytes: number; onEvict: () => void }): Slots {
  return new LRUCache<string, Slot>({
    // `max` would take room for all entries at once: 60 MB for a million, before the first is there.
    maxSize: Math.max(1, Math.floor(maxBytes)),
    sizeCalculation: sizeOf,
    dispose: (slot, _key, reason) => {
      slot.isGone = true;
      if (reason === 'evict') onEvict();
    },
  });
}

export const sizeOf = ({ entry }: Slot, key: string): number =>
  key.length + entry.values.length + entry.message.length + OVERHEAD_BYTES;

/**
 * What is used again in the same era keeps its place in the list, and so need not be looked up there. A new
 * era begins when so many parts of the entries have been stored: where nothing is stored nothing is evicted,
 * and the order matters to nobody.
 */
const ERAS_PER_TURNOVER = 64;

export class Eras {
  #now = 0;
  /** In this era. */
  #stored = 0;

  get now(): number {
    return this.#now;
  }

  /** One more is stored beside so many. */
  stored(entries: number): void {
    if (++this.#stored * ERAS_PER_TURNOVER < entries) return;
    this.#stored = 0;
    this.#now++;
  }
}
