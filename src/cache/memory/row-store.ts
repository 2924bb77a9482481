// Stores entries as rows of numbers outside the V8 heap, with texts in the block store, and compresses their JSON.
import { LRUCache } from 'lru-cache';
import { type Bytes, fromBuffer, toBuffer } from '../../handle/bytes.js';
import { type Entry, KINDS, type Times } from '../entry.js';
import type { EntryPin } from '../store.js';
import { BLOCK_BYTES, BlockStore } from './block-store.js';

/** Row fields. Those read on every use come first, close together. */
const STAMP = 0;
const TICK = 1;
const SINCE = 2;
const HITS = 3;
const CACHED_AT = 4;
const STALE_AT = 5;
const DELETE_AT = 6;
const KIND = 7;
const MESSAGE_LENGTH = 8;
const VALUES_LENGTH = 9;
/** First block of the message and the values; in a free row, the next free row. */
const TEXT_AT = 10;
const FIELDS = 11;

/** Texts above this length are slow to read from blocks, so recently read texts are cached as strings. */
const LARGE_CHARS = 16 * 1024;
const MAX_LARGE_CHARS = 16 * 1024 * 1024;

const ROWS_PER_PAGE_LOG2 = 12;
const ROWS_PER_PAGE = 1 << ROWS_PER_PAGE_LOG2;
const NONE = -1;

/** Bytes per row, and per block with its chain link. */
export const ROW_BYTES = FIELDS * Float64Array.BYTES_PER_ELEMENT;
const BLOCK_AND_LINK_BYTES = BLOCK_BYTES + Int32Array.BYTES_PER_ELEMENT;

const rowStart = (at: number): number => (at & (ROWS_PER_PAGE - 1)) * FIELDS;

/** Stores entries in numbered rows, which are reused when their entry is dropped. */
export class RowStore {
  #pages: Float64Array[] = [];
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

  /** Stores an entry and returns its row. `since`: the moment up to which bans have been applied. */
  add(entry: Entry, { since, tick }: { since: number; tick: number }): number {
    const at = this.#takeRow();
    const message = wide(entry.message);
    const values = compress(entry.values);
    this.#write(at, TICK, tick);
    this.#write(at, SINCE, since);
    this.#write(at, HITS, 0);
    this.#write(at, CACHED_AT, entry.requestedAt);
    this.#write(at, STALE_AT, entry.staleAt);
    this.#write(at, DELETE_AT, entry.deleteAt);
    this.#write(at, KIND, KINDS.indexOf(entry.kind));
    this.#write(at, MESSAGE_LENGTH, message.length);
    this.#write(at, VALUES_LENGTH, values.length);
    this.#write(at, TEXT_AT, this.#texts.write((message + values) as Bytes));
    this.#write(at, STAMP, ++this.#stamp);
    return at;
  }

  drop(at: number): void {
    this.#texts.free(this.#read(at, TEXT_AT));
    this.#largeTexts.delete(at);
    this.#write(at, STAMP, 0);
    this.#write(at, TEXT_AT, this.#free);
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

  entry(at: number): Entry {
    const messageLength = this.#read(at, MESSAGE_LENGTH);
    const length = messageLength + this.#read(at, VALUES_LENGTH);
    const text = this.#text(at, length);
    return {
      kind: KINDS[this.#read(at, KIND)] ?? 'not-found',
      values: expand(text.slice(messageLength) as Bytes),
      message: narrow(text.slice(0, messageLength) as Bytes),
      requestedAt: this.#read(at, CACHED_AT),
      staleAt: this.#read(at, STALE_AT),
      deleteAt: this.#read(at, DELETE_AT),
    };
  }

  isLarge(at: number): boolean {
    return this.#read(at, VALUES_LENGTH) > LARGE_CHARS;
  }

  #text(at: number, length: number): Bytes {
    if (length <= LARGE_CHARS) return this.#texts.read(this.#read(at, TEXT_AT), length);
    const known = this.#largeTexts.get(at);
    if (known !== undefined) return known;
    const text = this.#texts.read(this.#read(at, TEXT_AT), length);
    this.#largeTexts.set(at, text);
    return text;
  }

  times(at: number): Times {
    return { requestedAt: this.#read(at, CACHED_AT), staleAt: this.#read(at, STALE_AT) };
  }

  /** Sets the end of freshness, and invalidates all pins of the entry. */
  setStaleAt(at: number, staleAt: number): void {
    this.#write(at, STALE_AT, staleAt);
    this.#write(at, STAMP, ++this.#stamp);
  }

  pin(at: number): EntryPin {
    return { at, stamp: this.#read(at, STAMP) };
  }

  /**
   * Counts a use and returns true if the pinned entry is unchanged and was already used in this tick, and all
   * bans have been applied to it.
   */
  touchIfUnchanged(
    { at, stamp }: EntryPin,
    { tick, checkedFrom }: { tick: number; checkedFrom: number },
  ): boolean {
    const page = this.#pages[at >> ROWS_PER_PAGE_LOG2];
    const row = rowStart(at);
    if (page?.[row + STAMP] !== stamp || page[row + TICK] !== tick) return false;
    if ((page[row + SINCE] ?? 0) < checkedFrom) return false;
    page[row + HITS] = (page[row + HITS] ?? 0) + 1;
    return true;
  }

  used(at: number, tick: number): void {
    this.#write(at, HITS, this.#read(at, HITS) + 1);
    this.#write(at, TICK, tick);
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

  /** Returns the size of the row and its blocks (bytes). */
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
    if (this.#unused === this.#pages.length * ROWS_PER_PAGE)
      this.#pages.push(new Float64Array(ROWS_PER_PAGE * FIELDS));
    return this.#unused++;
  }

  /**
   * Reads a field. A row number from before `clear` may be out of range: the result is then 0, which is no
   * entry's stamp.
   */
  #read(at: number, field: number): number {
    return this.#pages[at >> ROWS_PER_PAGE_LOG2]?.[rowStart(at) + field] ?? 0;
  }

  #write(at: number, field: number, value: number): void {
    const page = this.#pages[at >> ROWS_PER_PAGE_LOG2];
    if (page !== undefined) page[rowStart(at) + field] = value;
  }
}

const NO_BYTES = '' as Bytes;

/** Encodes text as UTF-16, because a message may contain any character that JSON allows. */
const wide = (text: string): Bytes => (text === '' ? NO_BYTES : fromBuffer(Buffer.from(text, 'utf16le')));
const narrow = (bytes: Bytes): string => (bytes === '' ? bytes : toBuffer(bytes).toString('utf16le'));

/**
 * Phrases of Handle.Net JSON; a longer phrase precedes its own prefixes. Each is stored as a control
 * character (list index plus 1), because compact JSON contains no control characters.
 */
const PHRASES = [
  '"},"ttl":86400,"timestamp":"20',
  '"}},"ttl":86400,"timestamp":"20',
  '"},"ttl":',
  '"}},"ttl":',
  ',"timestamp":"20',
  'Z"},{"index":',
  'Z"}]',
  '[{"index":',
  ',"type":"URL","data":{"format":"string","value":"https://',
  ',"type":"URL","data":{"format":"string","value":"http://',
  ',"type":"HS_ADMIN","data":{"format":"admin","value":{"handle":"',
  ',"type":"10320/loc","data":{"format":"string","value":"',
  ',"type":"CHECKSUM","data":{"format":"string","value":"',
  ',"type":"EMAIL","data":{"format":"string","value":"',
  ',"type":"DESC","data":{"format":"string","value":"',
  ',"type":"',
  '","data":{"format":"string","value":"',
  '","data":{"format":"base64","value":"',
  '","index":',
  ',"permissions":"011111110011',
  ',"permissions":"111111110010',
  ',"permissions":"',
  'https://',
  'http://',
];

/** First byte of a text that is stored uncompressed. */
const AS_IS = '\0';

/** Maximum length of a text to compress, because compression takes about 10 ms per MiB. */
const MAX_CHARS = 16 * 1024;

const escaped = (phrase: string): string => phrase.replaceAll(/[[\]{}/.]/g, String.raw`\$&`);
const PHRASE = new RegExp(PHRASES.map(escaped).join('|'), 'g');
const CODE_OF = new Map(PHRASES.map((phrase, index) => [phrase, String.fromCharCode(index + 1)]));
const CONTROL = /[\0-\x1f]/;
const CODES = /[\x01-\x1f]/g;

/** Compresses a text of arbitrary bytes, which `expand` restores. */
export function compress(text: Bytes): Bytes {
  if (text === '') return text;
  if (text.length > MAX_CHARS || CONTROL.test(text)) return (AS_IS + text) as Bytes;
  return text.replace(PHRASE, (phrase) => CODE_OF.get(phrase) ?? phrase) as Bytes;
}

export function expand(stored: Bytes): Bytes {
  if (stored.startsWith(AS_IS)) return stored.slice(1) as Bytes;
  return stored.replace(CODES, (code) => PHRASES[code.charCodeAt(0) - 1] ?? code) as Bytes;
}
