// The keys of a simulated Redis, with types and expiry times.
import { ReplyError } from './redis-reply.js';
import type { SortedSet } from './redis-sorted-set.js';
import type { Stream } from './redis-streams.js';

interface ValueOf {
  string: string;
  hash: Map<string, string>;
  zset: SortedSet;
  list: string[];
  stream: Stream;
}

export type ValueType = keyof ValueOf;

type Slot = { [T in ValueType]: { type: T; value: ValueOf[T]; expireAt: number | undefined } }[ValueType];

export class Keyspace {
  /** Wall clock of the server in ms, at the start of the command. */
  now = 0;
  #slots = new Map<string, Slot>();

  get size(): number {
    return [...this.keys()].length;
  }

  *keys(): Iterable<string> {
    for (const key of [...this.#slots.keys()]) if (this.has(key)) yield key;
  }

  has(key: string): boolean {
    return this.#find(key) !== undefined;
  }

  typeOf(key: string): ValueType | 'none' {
    return this.#find(key)?.type ?? 'none';
  }

  /** Returns the value of a key. @throws ReplyError if the key has a different type */
  read<T extends ValueType>(key: string, type: T): ValueOf[T] | undefined {
    const slot = this.#find(key);
    if (slot === undefined) return undefined;
    if (slot.type !== type) {
      throw new ReplyError('WRONGTYPE Operation against a key holding the wrong kind of value');
    }
    return slot.value as ValueOf[T];
  }

  /** Like `read`, returns the value of a key, but creates a missing key with `empty`. */
  open<T extends Exclude<ValueType, 'string'>>(key: string, type: T, empty: () => ValueOf[T]): ValueOf[T] {
    const value = this.read(key, type);
    if (value !== undefined) return value;
    const made = empty();
    this.#slots.set(key, { type, value: made, expireAt: undefined } as Slot);
    return made;
  }

  /** Sets a new value, by default without expiry. */
  set(key: string, value: string, expireAt?: number): void {
    this.#slots.set(key, { type: 'string', value, expireAt });
  }

  /** Changes the value and preserves the expiry. */
  change(key: string, value: string): void {
    this.set(key, value, this.#find(key)?.expireAt);
  }

  delete(key: string): boolean {
    const isThere = this.has(key);
    this.#slots.delete(key);
    return isThere;
  }

  /** Deletes a hash, set or list without members, as Redis does. */
  dropIfEmpty(key: string): void {
    const slot = this.#slots.get(key);
    if (slot === undefined || slot.type === 'string' || slot.type === 'stream') return;
    const size = slot.type === 'list' ? slot.value.length : slot.value.size;
    if (size === 0) this.#slots.delete(key);
  }

  /** Returns the expiry, or undefined if the key does not expire. */
  expireAt(key: string): number | undefined {
    return this.#find(key)?.expireAt;
  }

  /** Sets the expiry. A time in the past deletes the key. @returns whether the key existed */
  setExpiry(key: string, at: number | undefined): boolean {
    const slot = this.#find(key);
    if (slot === undefined) return false;
    if (at !== undefined && at <= this.now) this.#slots.delete(key);
    else slot.expireAt = at;
    return true;
  }

  clear(): void {
    this.#slots.clear();
  }

  /** Returns an independent copy. */
  copy(): Keyspace {
    const copy = new Keyspace();
    copy.now = this.now;
    copy.#slots = new Map([...this.#slots].map(([key, slot]) => [key, copyOf(slot)]));
    return copy;
  }

  #find(key: string): Slot | undefined {
    const slot = this.#slots.get(key);
    if (slot?.expireAt === undefined || this.now <= slot.expireAt) return slot;
    this.#slots.delete(key);
    return undefined;
  }
}

function copyOf(slot: Slot): Slot {
  if (slot.type === 'string') return { ...slot };
  if (slot.type === 'hash') return { ...slot, value: new Map(slot.value) };
  if (slot.type === 'stream') return { ...slot, value: { ...slot.value, entries: [...slot.value.entries] } };
  return slot.type === 'zset' ? { ...slot, value: slot.value.copy() } : { ...slot, value: [...slot.value] };
}
