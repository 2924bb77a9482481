// The records of the demo server and the prefixes that live on it.
import { upperAscii } from '../../src/handle/handle.js';
import { type StoredValue, valueFromJson } from './value.js';

/** A record as it is written in a seed or handed to `put`: values in the JSON of the record interface. */
export type RecordInput = readonly unknown[];

/** Records by upper-cased handle, as a server with `case_sensitive = "no"` keeps them. */
export class RecordStore {
  readonly #records = new Map<string, StoredValue[]>();
  readonly #homed: Set<string>;
  readonly #now: () => number;

  constructor({ prefixes, now }: { prefixes: readonly string[]; now: () => number }) {
    this.#homed = new Set(prefixes.map(prefixHandle));
    this.#now = now;
  }

  /** The prefix handles that live here, sorted. */
  get prefixes(): string[] {
    return [...this.#homed].sort();
  }

  /** A handle without a slash is looked for among the prefix handles. */
  isHomed(handle: string): boolean {
    const slash = handle.indexOf('/');
    const prefix = slash === -1 ? '0.NA' : handle.slice(0, slash);
    return prefix === '0.SITE' || this.#homed.has(prefixHandle(prefix));
  }

  get(handle: string): StoredValue[] | undefined {
    return this.#records.get(keyOf(handle));
  }

  set(handle: string, values: StoredValue[]): void {
    this.#records.set(keyOf(handle), values);
  }

  delete(handle: string): boolean {
    return this.#records.delete(keyOf(handle));
  }

  /** Writes a whole record without asking anybody. */
  put(handle: string, record: RecordInput): void {
    this.set(
      handle,
      record.map((value) => valueFromJson(value, this.nowSeconds())),
    );
  }

  nowSeconds(): number {
    return Math.floor(this.#now() / 1000);
  }

  /** The stored handles of exactly this prefix, in the order of their bytes. */
  list(prefix: string): string[] {
    const start = `${prefixHandle(prefix).slice('0.NA/'.length)}/`;
    const names = [...this.#records.keys()].filter((key) => key.startsWith(start));
    return names.sort((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)));
  }
}

const keyOf = (handle: string): string => upperAscii(handle.includes('/') ? handle : `0.NA/${handle}`);

/** The handle that stands for a prefix: `21.t1` and `0.NA/21.T1` are both `0.NA/21.T1`. */
export function prefixHandle(prefix: string): string {
  const upper = upperAscii(prefix);
  return upper.startsWith('0.NA/') ? upper : `0.NA/${upper}`;
}
