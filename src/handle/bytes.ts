// Byte strings, and the reader and writers of the Handle System's binary layout (big-endian).

const BEYOND_ASCII = /[\x80-\xff]/;

/**
 * UTF-8 bytes as a string with one byte in each character. It takes less memory than a Buffer, and is written to a socket
 * together with its headers in one write. ASCII text, as most records are, is its own byte string.
 */
export type Bytes = string & { readonly __bytes: unique symbol };

/** Text to its UTF-8 bytes. */
export function toBytes(text: string): Bytes {
  if (Buffer.byteLength(text) === text.length) return text as Bytes;
  return Buffer.from(text, 'utf8').toString('latin1') as Bytes;
}

/** UTF-8 bytes back to text. */
export function toText(bytes: Bytes): string {
  if (!BEYOND_ASCII.test(bytes)) return bytes;
  return Buffer.from(bytes, 'latin1').toString('utf8');
}

/** Bytes of a Buffer as a byte string. */
export function fromBuffer(buffer: Buffer): Bytes {
  return buffer.toString('latin1') as Bytes;
}

/** A byte string as a Buffer. */
export function toBuffer(bytes: Bytes): Buffer {
  return Buffer.from(bytes, 'latin1');
}

export const int16 = (value: number): Buffer => Buffer.from([(value >> 8) & 0xff, value & 0xff]);

export const int32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value | 0);
  return bytes;
};

/** Bytes, or text in UTF-8, prefixed with their length. */
export const sized = (bytes: Buffer | string): Buffer => {
  const content = typeof bytes === 'string' ? Buffer.from(bytes, 'utf8') : bytes;
  return Buffer.concat([int32(content.length), content]);
};

/** hdllib refuses any count or length above this. */
const MAX_COUNT = 1_048_576;

/** Reads fields in sequence; throws a RangeError when the bytes end too early. */
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

  text(): string {
    return this.sized().toString('utf8');
  }

  list<T>(readOne: () => T): T[] {
    const length = this.int32();
    this.#assertWithin(length);
    return Array.from({ length }, readOne);
  }

  /** Called before anything of this length is allocated. */
  #assertWithin(length: number): void {
    if (length < 0 || length > MAX_COUNT) throw new RangeError('Invalid array size');
    if (length > this.remaining) throw new RangeError('the bytes end too early');
  }
}

/** The decoded data; undefined when the bytes are not of this type. */
export function tryDecode<T>(decode: (bytes: Buffer) => T, bytes: Buffer): T | undefined {
  try {
    return decode(bytes);
  } catch {
    return undefined;
  }
}
