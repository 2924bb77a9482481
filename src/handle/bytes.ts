// Byte strings, and a reader and a writer for the Handle System's binary layout (big-endian).
import { GROUP_SIZE, type Steps } from '../time-slicer.js';

const BEYOND_ASCII = /[\x80-\xff]/;

/**
 * UTF-8 bytes as a string with one byte per character. It uses less memory than a Buffer, and shares a single
 * socket write with its headers. ASCII text, like most records, is its own byte string.
 */
export type Bytes = string & { readonly __bytes: unique symbol };

/** Encodes text as UTF-8 bytes. */
export function toBytes(text: string): Bytes {
  if (Buffer.byteLength(text) === text.length) return text as Bytes;
  return Buffer.from(text, 'utf8').toString('latin1') as Bytes;
}

/** Decodes UTF-8 bytes to text. */
export function toText(bytes: Bytes): string {
  if (!BEYOND_ASCII.test(bytes)) return bytes;
  return Buffer.from(bytes, 'latin1').toString('utf8');
}

export const fromBuffer = (buffer: Buffer): Bytes => buffer.toString('latin1') as Bytes;

/** Converts a byte string to a Buffer. */
export const toBuffer = (bytes: Bytes): Buffer => Buffer.from(bytes, 'latin1');

/** Thrown by a `ByteWriter` before it writes more than its maximum. */
export class LengthLimitError extends Error {}

const FIRST_BYTES = 256;

/**
 * Writes fields in sequence into one buffer, because a buffer per field of a long list takes ten times as long.
 *
 * @throws LengthLimitError before it exceeds `maxBytes`, so that the work is bounded too
 */
export class ByteWriter {
  #bytes = Buffer.allocUnsafe(FIRST_BYTES);
  #length = 0;

  constructor(private readonly maxBytes = Infinity) {}

  /** Number of bytes that can still be written. */
  get room(): number {
    return this.maxBytes - this.#length;
  }

  finish(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  byte(value: number): this {
    const at = this.#reserve(1);
    this.#bytes[at] = value;
    return this;
  }

  int16(value: number): this {
    const at = this.#reserve(2);
    this.#bytes.writeUInt16BE(value & 0xffff, at);
    return this;
  }

  int32(value: number): this {
    const at = this.#reserve(4);
    this.#bytes.writeInt32BE(value | 0, at);
    return this;
  }

  bytes(bytes: Buffer): this {
    const at = this.#reserve(bytes.length);
    bytes.copy(this.#bytes, at);
    return this;
  }

  /** Writes bytes with their length before them. */
  sized(bytes: Buffer): this {
    return this.int32(bytes.length).bytes(bytes);
  }

  /** Writes text as UTF-8 with its length before it. @throws TypeError for JSON that is not a text */
  sizedText(text: string): this {
    assertFits(text, this.room);
    const length = Buffer.byteLength(text, 'utf8');
    const at = this.int32(length).#reserve(length);
    if (length > 0) this.#bytes.write(text, at, 'utf8');
    return this;
  }

  /** Writes a list with its length before it, in steps. @throws TypeError for JSON that is not a list */
  *stepElements<T>(list: readonly T[], writeOne: (one: T) => unknown): Steps<void> {
    if (!Array.isArray(list)) throw new TypeError('not a list');
    this.int32(list.length);
    let count = 0;
    for (const one of list as readonly T[]) {
      writeOne(one);
      if (++count % GROUP_SIZE === 0) yield;
    }
  }

  /** Returns the place for a field of this length. */
  #reserve(length: number): number {
    if (length > this.room) throw new LengthLimitError(`more than ${this.maxBytes} bytes`);
    const at = this.#length;
    this.#length += length;
    if (this.#length > this.#bytes.length) {
      const longer = Buffer.allocUnsafe(2 * this.#length);
      this.#bytes.copy(longer, 0, 0, at);
      this.#bytes = longer;
    }
    return at;
  }
}

/** Asserts that a text can fit, before it is encoded: each character takes at least one byte. */
export function assertFits(text: string, maxBytes: number): void {
  if (text.length > maxBytes) throw new LengthLimitError(`more than ${maxBytes} bytes`);
}

/** Runs all steps of a list, as `runToEnd` does for work of any kind. */
export function completeSteps<T>(steps: Steps<T>): T {
  let result = steps.next();
  while (result.done !== true) result = steps.next();
  return result.value;
}

/** Maximum count or length, as in hdllib. */
const MAX_COUNT = 1_048_576;

/** Reads fields in sequence. @throws RangeError if the bytes end too early */
export class ByteReader {
  #at = 0;

  constructor(private readonly source: Buffer) {}

  get remaining(): number {
    return this.source.length - this.#at;
  }

  take(length: number): Buffer {
    const at = this.#skip(length);
    return this.source.subarray(at, this.#at);
  }

  byte(): number {
    return this.source.readUInt8(this.#skip(1));
  }

  int16(): number {
    return this.source.readUInt16BE(this.#skip(2));
  }

  int32(): number {
    return this.source.readInt32BE(this.#skip(4));
  }

  sized(): Buffer {
    return this.take(this.int32());
  }

  sizedText(): string {
    const at = this.#skip(this.int32());
    return this.source.toString('utf8', at, this.#at);
  }

  elements<T>(readOne: () => T, most = MAX_COUNT): T[] {
    return completeSteps(this.stepElements(readOne, most));
  }

  /** Reads a list of at most `most` elements in steps. */
  *stepElements<T>(readOne: () => T, most = MAX_COUNT): Steps<T[]> {
    const length = this.int32();
    this.#assertWithin(length);
    if (length > most) throw new RangeError('Invalid array size');
    const elements: T[] = [];
    while (elements.length < length) {
      elements.push(readOne());
      if (elements.length % GROUP_SIZE === 0) yield;
    }
    return elements;
  }

  /** Returns the place of a field of this length. */
  #skip(length: number): number {
    this.#assertWithin(length);
    this.#at += length;
    return this.#at - length;
  }

  /** Asserts a length before a buffer or array of this length is created. */
  #assertWithin(length: number): void {
    if (length < 0 || length > MAX_COUNT) throw new RangeError('Invalid array size');
    if (length > this.remaining) throw new RangeError('the bytes end too early');
  }
}

/** Returns the decoded data; undefined if it is of a different type or form, for which `decode` throws. */
export function tryDecode<Given, T>(decode: (given: Given) => T, given: Given): T | undefined {
  try {
    return decode(given);
  } catch {
    return undefined;
  }
}

/** Appends to a doubling buffer: a list of one-byte chunks would need a hundred times their memory. */
export function appendChunk(bytes: Buffer, size: number, chunk: Buffer): Buffer {
  const needed = size + chunk.length;
  const target = needed <= bytes.length ? bytes : Buffer.alloc(Math.max(needed, 2 * bytes.length));
  if (target !== bytes) bytes.copy(target, 0, 0, size);
  chunk.copy(target, size);
  return target;
}
