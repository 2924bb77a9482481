// Entries as rows of numbers outside the V8 heap, the texts of their records in slabs.
import { type Bytes, fromBuffer, toBuffer } from '../../handle/bytes.js';
import { type Entry, KINDS, type Times } from '../entry.js';
import { BLOCK_BYTES, Slabs } from './block-store.js';

/** The place of an entry, for who asks for the same key again and again. */
export interface Held {
  at: number;
  /** No other entry ever has the same, nor this one when something of it has changed. */
  stamp: number;
}

/** What is looked at with each use comes first and together. */
const STAMP = 0;
const ERA = 1;
const SINCE = 2;
const HITS = 3;
const CACHED_AT = 4;
const STALE_AT = 5;
const DELETE_AT = 6;
const KIND = 7;
const MESSAGE_LENGTH = 8;
const VALUES_LENGTH = 9;
/** Where the message and the values are; in a row that is free, the next free row. */
const TEXT_AT = 10;
const FIELDS = 11;

const ROWS_A_PAGE_LOG2 = 12;
const ROWS_A_PAGE = 1 << ROWS_A_PAGE_LOG2;
const NONE = -1;

/** The row, and of each block its link. */
const ROW_BYTES = FIELDS * Float64Array.BYTES_PER_ELEMENT;
const BLOCK_AND_LINK_BYTES = BLOCK_BYTES + Int32Array.BYTES_PER_ELEMENT;

const rowOf = (at: number): number => (at & (ROWS_A_PAGE - 1)) * FIELDS;

/** A row is a place, which serves one entry after the other; V8 has nothing to collect there, however many there are. */
export class Slots {
  #pages: Float64Array[] = [];
  #texts = new Slabs();
  #free = NONE;
  /** The first row that was never used. */
  #fresh = 0;
  #stamp = 0;

  /** `since`: the moment from which on bans have still to be applied. */
  add(entry: Entry, { since, era }: { since: number; era: number }): number {
    const at = this.#takeRow();
    const message = wide(entry.message);
    this.#write(at, ERA, era);
    this.#write(at, SINCE, since);
    this.#write(at, HITS, 0);
    this.#write(at, CACHED_AT, entry.cachedAt);
    this.#write(at, STALE_AT, entry.staleAt);
    this.#write(at, DELETE_AT, entry.deleteAt);
    this.#write(at, KIND, KINDS.indexOf(entry.kind));
    this.#write(at, MESSAGE_LENGTH, message.length);
    this.#write(at, VALUES_LENGTH, entry.values.length);
    this.#write(at, TEXT_AT, this.#texts.keep((message + entry.values) as Bytes));
    this.#write(at, STAMP, ++this.#stamp);
    return at;
  }

  drop(at: number): void {
    this.#texts.drop(this.#read(at, TEXT_AT));
    this.#write(at, STAMP, 0);
    this.#write(at, TEXT_AT, this.#free);
    this.#free = at;
  }

  /** Drops all at once; no place is good any more, nor is a stamp given twice. */
  clear(): void {
    this.#pages = [];
    this.#texts = new Slabs();
    this.#free = NONE;
    this.#fresh = 0;
  }

  entry(at: number): Entry {
    const messageLength = this.#read(at, MESSAGE_LENGTH);
    const length = messageLength + this.#read(at, VALUES_LENGTH);
    const text = this.#texts.read(this.#read(at, TEXT_AT), length);
    return {
      kind: KINDS[this.#read(at, KIND)] ?? 'not-found',
      values: text.slice(messageLength) as Bytes,
      message: narrow(text.slice(0, messageLength) as Bytes),
      cachedAt: this.#read(at, CACHED_AT),
      staleAt: this.#read(at, STALE_AT),
      deleteAt: this.#read(at, DELETE_AT),
    };
  }

  times(at: number): Times {
    return { cachedAt: this.#read(at, CACHED_AT), staleAt: this.#read(at, STALE_AT) };
  }

  /** From now on it is another entry to whoever holds it. */
  setStaleAt(at: number, staleAt: number): void {
    this.#write(at, STALE_AT, staleAt);
    this.#write(at, STAMP, ++this.#stamp);
  }

  hold(at: number): Held {
    return { at, stamp: this.#read(at, STAMP) };
  }

  /** It is the entry that was held, used before in this era and checked since that moment: counts the use. */
  useAsItWas({ at, stamp }: Held, { era, checkedFrom }: { era: number; checkedFrom: number }): boolean {
    const page = this.#pages[at >> ROWS_A_PAGE_LOG2];
    const row = rowOf(at);
    if (page?.[row + STAMP] !== stamp || page[row + ERA] !== era) return false;
    if ((page[row + SINCE] ?? 0) < checkedFrom) return false;
    page[row + HITS] = (page[row + HITS] ?? 0) + 1;
    return true;
  }

  used(at: number, era: number): void {
    this.#write(at, HITS, this.#read(at, HITS) + 1);
    this.#write(at, ERA, era);
  }

  hits(at: number): number {
    return this.#read(at, HITS);
  }

  since(at: number): number {
    return this.#read(at, SINCE);
  }

  setSince(at: number, since: number): void {
    this.#write(at, SINCE, since);
  }

  /** What the place takes here. */
  bytes(at: number): number {
    const length = this.#read(at, MESSAGE_LENGTH) + this.#read(at, VALUES_LENGTH);
    return ROW_BYTES + Math.ceil(length / BLOCK_BYTES) * BLOCK_AND_LINK_BYTES;
  }

  #takeRow(): number {
    const at = this.#free;
    if (at !== NONE) {
      this.#free = this.#read(at, TEXT_AT);
      return at;
    }
    if (this.#fresh === this.#pages.length * ROWS_A_PAGE)
      this.#pages.push(new Float64Array(ROWS_A_PAGE * FIELDS));
    return this.#fresh++;
  }

  /** A place from before all was dropped may be beyond the end: no entry has the stamp 0. */
  #read(at: number, field: number): number {
    return this.#pages[at >> ROWS_A_PAGE_LOG2]?.[rowOf(at) + field] ?? 0;
  }

  #write(at: number, field: number, value: number): void {
    const page = this.#pages[at >> ROWS_A_PAGE_LOG2];
    if (page !== undefined) page[rowOf(at) + field] = value;
  }
}

const NO_BYTES = '' as Bytes;

/** Two bytes a character: a message may hold anything that JSON can. */
const wide = (text: string): Bytes => (text === '' ? NO_BYTES : fromBuffer(Buffer.from(text, 'utf16le')));
const narrow = (bytes: Bytes): string => (bytes === '' ? bytes : toBuffer(bytes).toString('utf16le'));
