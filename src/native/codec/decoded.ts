// The result of decoding bytes from the network.

/** A problem is the text for the answer. */
export type Decoded<T> = { ok: true; value: T } | { ok: false; problem: string };

/** Calls a reader of bytes, which throws a RangeError when they are malformed. */
export function decoded<T>(read: () => T): Decoded<T> {
  try {
    return { ok: true, value: read() };
  } catch (error) {
    if (error instanceof RangeError) return { ok: false, problem: error.message };
    throw error;
  }
}
