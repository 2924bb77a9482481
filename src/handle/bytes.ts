// Byte strings, and a reader and writers for the Handle System's binary layout (big-endian).

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

/** Converts a Buffer to a byte string. */
export function fromBuffer(buffer: Buffer): Bytes {
  return buffer.toString('latin1') as Bytes;
}

/** Converts a byte string to a Buffer. */
export function toBuffer(bytes: Bytes): Buffer {
  return Buffer.from(bytes, 'latin1');
}

export const int16 = (value: number): Buffer => Buffer.from([(value >> 8) & 0xff, value & 0xff]);

export const int32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value | 0);
  return bytes;
};

/** Encodes bytes, or text as UTF-8, with a length prefix. */
export const sized = (bytes: Buffer | string): Buffer => {
  const content = typeof bytes === 'string' ? Buffer.from(bytes, 'utf8') : bytes;
  return Buffer.concat([int32(content.length), content]);
};

/** Joins the encoded elements of a list, with their number before them. */
export const counted = (elements: readonly Buffer[]): Buffer =>
  Buffer.concat([int32(elements.length), ...elements]);

/** Maximum count or length, as in hdllib. */
const MAX_COUNT = 1_048_576;

/** Reads fields in sequence. @throws RangeError if the bytes end too early */
export class ByteReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get remaining(): number {
    return this.#bytes.length - this.#at;
  }

  take(length: number): Buffer {
    this.#assertWithin(length);
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  byte(): number {
    return this.take(1).readUInt8();
  }

  int16(): number {
    return this.take(2).readUInt16BE();
  }

  int32(): number {
    return this.take(4).readInt32BE();
  }

  sized(): Buffer {
    return this.take(this.int32());
  }

  sizedText(): string {
    return this.sized().toString('utf8');
  }

  elements<T>(readOne: () => T): T[] {
    const length = this.int32();
    this.#assertWithin(length);
    return Array.from({ length }, readOne);
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
