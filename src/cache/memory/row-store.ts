// Stores entries as rows of numbers outside the V8 heap, with their texts in the block store.
import { LRUCache } from 'lru-cache';
import { type Bytes, fromBuffer, toBuffer, toBytes, toText } from '../../handle/bytes.js';
import { SMALL_CHARS } from '../../time-slicer.js';
import { type Entry, KINDS, type Times } from '../entry.js';
import type { EntryPin } from '../store.js';
import { BLOCK_BYTES, BlockStore } from './block-store.js';
import { compress, expand } from './phrase-codec.js';

/** Byte offsets of the fields of a row. Those read on every use come first, close together. */
const STAMP = 0;
const SINCE = 8;
const TICK = 16;
const HITS = 20;
const CACHED_AT = 24;
const STALE_AT = 32;
const DELETE_AT = 40;
/** First block of the key, the message and the values; in a free row, the next free row. */
const TEXT_AT = 48;
const MESSAGE_LENGTH = 52;
const VALUES_LENGTH = 56;
/** Four times the length of the key, plus the kind. */
const KEY_AND_KIND = 60;
export const ROW_BYTES = 64;

const MAX_HITS = 2 ** 32 - 1;

/** Large texts are slow to read from blocks, so recently read texts are cached as strings. */
const MAX_LARGE_CHARS = 16 * 1024 * 1024;

const ROWS_PER_PAGE_LOG2 = 12;
const ROWS_PER_PAGE = 1 << ROWS_PER_PAGE_LOG2;
const NONE = -1;

const newPage = (): DataView => new DataView(new ArrayBuffer(ROWS_PER_PAGE * ROW_BYTES));
/** Read for a row number from before `clear`: its stamp is 0, which is no entry's. */
const NO_ROWS = newPage();

/** Bytes per block with its chain link. */
const BLOCK_AND_LINK_BYTES = BLOCK_BYTES + Int32Array.BYTES_PER_ELEMENT;

/** Stores entries in numbered rows, which are reused when their entry is dropped. */
export class RowStore {
  #pages: DataView[] = [];
  #texts = new BlockStore();
  /** The most recently read large texts, by row. */
  readonly #largeTexts = new LRUCache<number, Bytes>({
    maxSize: MAX_LARGE_CHARS,
    sizeCalculation: (text) => text.length,
  });
  #free = NONE;
  /** The first row that was never used. */
  #unused = 0;
  #stamp = 0;

  /** Exclusive upper bound of the row numbers. */
  get end(): number {
    return this.#unused;
  }

  /** Stores an entry and returns its row. `since`: the moment up to which bans have been applied. */
  add(key: string, entry: Entry, { since, tick }: { since: number; tick: number }): number {
    const at = this.#takeRow();
    const view = this.#viewOf(at);
    const row = (at % ROWS_PER_PAGE) * ROW_BYTES;
    const name = toBytes(key);
    const message = wide(entry.message);
    const values = compress(entry.values);
    view.setFloat64(row + STAMP, ++this.#stamp);
    view.setFloat64(row + SINCE, since);
    view.setUint32(row + TICK, tick);
    view.setUint32(row + HITS, 0);
    view.setFloat64(row + CACHED_AT, entry.requestedAt);
    view.setFloat64(row + STALE_AT, entry.staleAt);
    view.setFloat64(row + DELETE_AT, entry.deleteAt);
    view.setInt32(row + TEXT_AT, this.#texts.write((name + message + values) as Bytes));
    view.setUint32(row + MESSAGE_LENGTH, message.length);
    view.setUint32(row + VALUES_LENGTH, values.length);
    view.setUint32(row + KEY_AND_KIND, name.length * 4 + KINDS.indexOf(entry.kind));
    return at;
  }

  drop(at: number): void {
    const view = this.#viewOf(at);
    const row = (at % ROWS_PER_PAGE) * ROW_BYTES;
    this.#texts.free(view.getInt32(row + TEXT_AT));
    this.#largeTexts.delete(at);
    view.setFloat64(row + STAMP, 0);
    view.setInt32(row + TEXT_AT, this.#free);
    this.#free = at;
  }

  /** Drops all entries. The stamp counter continues, so that no new entry matches an old stamp. */
  clear(): void {
    this.#pages = [];
    this.#texts = new BlockStore();
    this.#largeTexts.clear();
    this.#free = NONE;
    this.#unused = 0;
  }

  /** Returns the key of a row; undefined for a free row. */
  key(at: number): string | undefined {
    const view = this.#viewOf(at);
    const row = (at % ROWS_PER_PAGE) * ROW_BYTES;
    if (view.getFloat64(row + STAMP) === 0) return undefined;
    return toText(this.#texts.read(view.getInt32(row + TEXT_AT), view.getUint32(row + KEY_AND_KIND) >>> 2));
  }

  hasKey(at: number, key: string): boolean {
    const view = this.#viewOf(at);
    const row = (at % ROWS_PER_PAGE) * ROW_BYTES;
    const name = toBytes(key);
    const isAsLong = view.getUint32(row + KEY_AND_KIND) >>> 2 === name.length;
    return isAsLong && this.#texts.startsWith(view.getInt32(row + TEXT_AT), name);
  }

  entry(at: number): Entry {
    const view = this.#viewOf(at);
    const row = (at % ROWS_PER_PAGE) * ROW_BYTES;
    const keyAndKind = view.getUint32(row + KEY_AND_KIND);
    const messageAt = keyAndKind >>> 2;
    const valuesAt = messageAt + view.getUint32(row + MESSAGE_LENGTH);
    const length = valuesAt + view.getUint32(row + VALUES_LENGTH);
    const text = this.#text(at, view.getInt32(row + TEXT_AT), length);
    return {
      kind: KINDS[keyAndKind & 3] ?? 'not-found',
      values: expand(text.slice(valuesAt) as Bytes),
      message: narrow(text.slice(messageAt, valuesAt) as Bytes),
      requestedAt: view.getFloat64(row + CACHED_AT),
      staleAt: view.getFloat64(row + STALE_AT),
      deleteAt: view.getFloat64(row + DELETE_AT),
    };
  }

  isLarge(at: number): boolean {
    return this.#viewOf(at).getUint32((at % ROWS_PER_PAGE) * ROW_BYTES + VALUES_LENGTH) > SMALL_CHARS;
  }

  #text(at: number, first: number, length: number): Bytes {
    if (length <= SMALL_CHARS) return this.#texts.read(first, length);
    const known = this.#largeTexts.get(at);
    if (known !== undefined) return known;
    const text = this.#texts.read(first, length);
    this.#largeTexts.set(at, text);
    return text;
  }

  times(at: number): Times {
    const view = this.#viewOf(at);
    const row = (at % ROWS_PER_PAGE) * ROW_BYTES;
    return { requestedAt: view.getFloat64(row + CACHED_AT), staleAt: view.getFloat64(row + STALE_AT) };
  }

  /** Sets the end of freshness, and invalidates all pins of the entry. */
  setStaleAt(at: number, staleAt: number): void {
    const view = this.#viewOf(at);
    const row = (at % ROWS_PER_PAGE) * ROW_BYTES;
    view.setFloat64(row + STALE_AT, staleAt);
    view.setFloat64(row + STAMP, ++this.#stamp);
  }

  pin(at: number): EntryPin {
    return { at, stamp: this.#viewOf(at).getFloat64((at % ROWS_PER_PAGE) * ROW_BYTES + STAMP) };
  }

  /** Counts a use and returns true if the entry is unchanged, already used in this tick, and all bans are applied. */
  touchIfUnchanged(
    { at, stamp }: EntryPin,
    { tick, checkedFrom }: { tick: number; checkedFrom: number },
  ): boolean {
    const view = this.#viewOf(at);
    const row = (at % ROWS_PER_PAGE) * ROW_BYTES;
    if (view.getFloat64(row + STAMP) !== stamp || view.getUint32(row + TICK) !== tick) return false;
    if (view.getFloat64(row + SINCE) < checkedFrom) return false;
    countHit(view, row);
    return true;
  }

  used(at: number, tick: number): void {
    const view = this.#viewOf(at);
    const row = (at % ROWS_PER_PAGE) * ROW_BYTES;
    countHit(view, row);
    view.setUint32(row + TICK, tick);
  }

  hits(at: number): number {
    return this.#viewOf(at).getUint32((at % ROWS_PER_PAGE) * ROW_BYTES + HITS);
  }

  since(at: number): number {
    return this.#viewOf(at).getFloat64((at % ROWS_PER_PAGE) * ROW_BYTES + SINCE);
  }

  setSince(at: number, since: number): void {
    this.#viewOf(at).setFloat64((at % ROWS_PER_PAGE) * ROW_BYTES + SINCE, since);
  }

  bytes(at: number): number {
    const view = this.#viewOf(at);
    const row = (at % ROWS_PER_PAGE) * ROW_BYTES;
    const keyLength = view.getUint32(row + KEY_AND_KIND) >>> 2;
    const length = keyLength + view.getUint32(row + MESSAGE_LENGTH) + view.getUint32(row + VALUES_LENGTH);
    return ROW_BYTES + Math.ceil(length / BLOCK_BYTES) * BLOCK_AND_LINK_BYTES;
  }

  #takeRow(): number {
    const at = this.#free;
    if (at !== NONE) {
      this.#free = this.#viewOf(at).getInt32((at % ROWS_PER_PAGE) * ROW_BYTES + TEXT_AT);
      return at;
    }
    if (this.#unused === this.#pages.length * ROWS_PER_PAGE) this.#pages.push(newPage());
    return this.#unused++;
  }

  #viewOf(at: number): DataView {
    return this.#pages[at >> ROWS_PER_PAGE_LOG2] ?? NO_ROWS;
  }
}

function countHit(view: DataView, row: number): void {
  const hits = view.getUint32(row + HITS);
  if (hits < MAX_HITS) view.setUint32(row + HITS, hits + 1);
}

const NO_BYTES = '' as Bytes;

/** Encodes text as UTF-16, because a message may contain any character that JSON allows. */
const wide = (text: string): Bytes => (text === '' ? NO_BYTES : fromBuffer(Buffer.from(text, 'utf16le')));
const narrow = (bytes: Bytes): string => (bytes === '' ? bytes : toBuffer(bytes).toString('utf16le'));
