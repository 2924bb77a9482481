// The memory store keeps entries as bytes in blocks and behaves like a Map.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { hashOf } from '../../src/cache/coherence/groups.js';
import { type Entry, asStale } from '../../src/cache/entry.js';
import { MemoryStore } from '../../src/cache/memory/memory-store.js';
import type { EntryPin } from '../../src/cache/store.js';
import { toBytes } from '../../src/handle/bytes.js';
import { NOW } from '../support/store-contract.js';

/** Keys with the same hash. */
const COLLIDING = ['21.T1/KEY-162789', '21.T1/KEY-379192'] as const;
const KEYS = ['A/1', 'A/2', 'A/Größe', 'B/1', 'B/漢字', 'B/\ud800', ...COLLIDING];
const keys = fc.constantFrom(...KEYS);
const times = fc.integer({ min: NOW - 5000, max: NOW + 5000 });
const lives = { requestedAt: times, staleAt: times, deleteAt: times };
const found = fc.record({
  ...lives,
  kind: fc.constant('found' as const),
  values: fc.nat({ max: 3000 }).map((length) => toBytes(JSON.stringify('Größe '.repeat(length / 6)))),
  message: fc.constant(''),
});
const missing = fc.record({
  ...lives,
  kind: fc.constantFrom('empty' as const, 'not-found' as const),
  values: fc.constant(toBytes('')),
  message: fc.constantFrom('', 'No such handle', '漢字 \ud800'),
});

const put = fc.record({ kind: fc.constant('put' as const), key: keys, entry: fc.oneof(found, missing) });
const use = fc.record({ kind: fc.constantFrom('peek' as const, 'forget' as const), key: keys });
const soften = fc.record({ kind: fc.constant('soften' as const), key: keys });
const ban = fc.record({
  kind: fc.constant('ban' as const),
  prefix: fc.constantFrom('', 'A/', 'B/1'),
  isSoft: fc.boolean(),
});

type Act = Drawn<typeof put> | Drawn<typeof use> | Drawn<typeof soften> | Drawn<typeof ban>;
type Drawn<T> = T extends fc.Arbitrary<infer One> ? One : never;

function act(store: MemoryStore, done: Act): void {
  if (done.kind === 'put') store.set(done.key, done.entry, store.get(done.key).ticket);
  else if (done.kind === 'ban') store.ban(done);
  else if (done.kind === 'peek') store.peek(done.key);
  else store.applyChange({ kind: done.kind, key: done.key });
}

/** Applies the operation to a Map immediately, with the most recently used entry last. */
function actInMap(map: Map<string, Entry>, done: Act): void {
  const makeStale = (isMeant: (key: string) => boolean): void => {
    for (const [key, entry] of map) if (isMeant(key)) map.set(key, asStale(entry));
  };
  if (done.kind === 'ban') {
    const isMeant = (key: string): boolean => key.startsWith(done.prefix);
    if (done.isSoft) makeStale(isMeant);
    else for (const key of [...map.keys()].filter(isMeant)) map.delete(key);
    return;
  }
  if (done.kind === 'soften') makeStale((key) => key === done.key);
  const entry = done.kind === 'put' ? done.entry : map.get(done.key);
  map.delete(done.key);
  if (entry !== undefined && done.kind !== 'forget') map.set(done.key, entry);
}

/**
 * The eviction policy over Maps in order of use: a record starts among the newcomers, and its first use moves it to the
 * kept records. Newcomers make room while they exceed a tenth of the bound, otherwise the least recently used record.
 */
class EvictionModel {
  readonly #kept = new Map<string, Entry>();
  readonly #newcomers = new Map<string, Entry>();
  readonly #missing = new Map<string, Entry>();
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  get(key: string): Entry | undefined {
    return this.#kept.get(key) ?? this.#newcomers.get(key) ?? this.#missing.get(key);
  }

  act(done: Exclude<Act, { kind: 'ban' }>): void {
    const { key } = done;
    if (done.kind === 'soften') this.#soften(key);
    if (done.kind === 'peek' || done.kind === 'put') this.#use(key);
    if (done.kind === 'put') this.#put(key, done.entry);
    if (done.kind === 'forget') for (const list of this.#lists) list.delete(key);
  }

  get #lists(): Map<string, Entry>[] {
    return [this.#kept, this.#newcomers, this.#missing];
  }

  #soften(key: string): void {
    for (const list of this.#lists) {
      const entry = list.get(key);
      if (entry) list.set(key, asStale(entry));
    }
  }

  #use(key: string): void {
    const entry = this.get(key);
    if (entry === undefined) return;
    const home = this.#missing.has(key) ? this.#missing : this.#kept;
    for (const list of this.#lists) list.delete(key);
    home.set(key, entry);
  }

  #put(key: string, entry: Entry): void {
    const home = entry.kind !== 'found' ? this.#missing : this.#kept.has(key) ? this.#kept : this.#newcomers;
    for (const list of this.#lists) list.delete(key);
    home.set(key, entry);
    if (this.#missing.size > this.#most) removeFirst(this.#missing);
    while (this.#kept.size + this.#newcomers.size > this.#most)
      removeFirst(
        this.#kept.size === 0 || this.#newcomers.size > Math.max(1, this.#most / 10)
          ? this.#newcomers
          : this.#kept,
      );
  }
}

function removeFirst(map: Map<string, Entry>): void {
  for (const key of [...map.keys()].slice(0, 1)) map.delete(key);
}

const open = (most: number): MemoryStore =>
  new MemoryStore({
    bounds: { maxBytes: 10_000_000, found: { maxEntries: most }, notFound: { maxEntries: most } },
    now: () => NOW,
  });

function hold(store: MemoryStore, key: string, entry: Entry): EntryPin {
  const held = store.pin(key, entry);
  if (held === undefined) throw new Error(`${key} is not kept as it was given`);
  return held;
}

describe('memory store', () => {
  test('is tested with two keys of the same hash', () => {
    expect(hashOf(COLLIDING[0])).toBe(hashOf(COLLIDING[1]));
  });

  test('behaves like a Map of entries', () => {
    const acts = fc.array(fc.oneof(put, use, soften, ban), { maxLength: 60 });
    fc.assert(
      fc.property(acts, (chosen) => {
        const store = open(100);
        const map = new Map<string, Entry>();
        const held = new Map<string, { by: EntryPin; entry: Entry }>();
        for (const done of chosen) {
          act(store, done);
          actInMap(map, done);
          const isHeld = [...held].map(([key, { by }]) => store.touchIfCurrent(key, by));
          expect(isHeld).toEqual([...held].map(([key, { entry }]) => map.get(key) === entry));
          expect(KEYS.map((key) => store.peek(key))).toEqual(KEYS.map((key) => map.get(key)));
          for (const [key, entry] of map) held.set(key, { by: hold(store, key, entry), entry });
        }
      }),
    );
  });

  test('evicts newcomers, then the least recently used entry, like Maps in order of use', () => {
    const acts = fc.array(fc.oneof(put, put, use, soften), { maxLength: 80 });
    fc.assert(
      fc.property(acts, fc.integer({ min: 1, max: 4 }), (chosen, most) => {
        const store = open(most);
        const model = new EvictionModel(most);
        for (const done of chosen) {
          act(store, done);
          model.act(done);
          expect(KEYS.map((key) => store.inspect(key)?.entry)).toEqual(KEYS.map((key) => model.get(key)));
        }
      }),
    );
  });
});
