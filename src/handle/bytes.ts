// Byte strings: one character (U+0000 to U+00FF) per byte, as they go onto the wire.

/**
 * UTF-8 bytes held in a one-byte string: a Buffer for each costs 400 bytes more, and a string goes into a socket
 * together with its headers in one write.
 */
export type Bytes = string & { readonly __bytes: unique symbol };

/** Text to its UTF-8 bytes. */
export function toBytes(text: string): Bytes {
  return Buffer.from(text, 'utf8').toString('latin1') as Bytes;
}

/** UTF-8 bytes back to text. ASCII, which most records are, is the same in both. */
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

const BEYOND_ASCII = /[\x80-\xff]/;
