// Reads the few request headers an answer can depend on, straight from the raw list.

export interface AskedHeaders {
  acceptEncoding: string | undefined;
  ifNoneMatch: string | undefined;
  /** Printable ASCII, and not longer than any that a browser sends. */
  origin: string | undefined;
}

/**
 * The headers of interest, or undefined when one is there that needs the long way: credentials, a body, our own name
 * in Via, an odd Origin, one of them twice. One object serves all calls.
 */
export type ScanHeaders = (raw: readonly string[]) => AskedHeaders | undefined;

/** `pseudonym`: our own name in `Via`. */
export function createScanHeaders(pseudonym: string): ScanHeaders {
  // Touching `req.headers` builds an object of all headers: 15 % of a whole answer.
  const found: AskedHeaders = { acceptEncoding: undefined, ifNoneMatch: undefined, origin: undefined };

  function read(name: string, value: string): boolean {
    // A request that comes back is refused (RFC 9110 §7.6.3); all others have merely passed another proxy.
    if (name === 'via') return !value.includes(pseudonym);
    const place = READ.get(name);
    if (place === undefined) return !LONG_WAY.has(name);
    if (found[place] !== undefined) return false;
    found[place] = value;
    return place !== 'origin' || PLAIN_ORIGIN.test(value);
  }

  return function scanHeaders(raw) {
    found.acceptEncoding = undefined;
    found.ifNoneMatch = undefined;
    found.origin = undefined;
    for (let at = 0; at < raw.length; at += 2) {
      const name = raw[at] as string;
      // Most names have a length that none of ours has: Host, User-Agent, Connection.
      if (MAY_MATTER[name.length] !== 1) continue;
      if (!read(name.toLowerCase(), raw[at + 1] as string)) return undefined;
    }
    return found;
  };
}

const READ = new Map<string, keyof AskedHeaders>([
  ['accept-encoding', 'acceptEncoding'],
  ['if-none-match', 'ifNoneMatch'],
  ['origin', 'origin'],
]);
const LONG_WAY = new Set(['authorization', 'content-length', 'transfer-encoding', 'expect']);

/** RFC 6454 §7.1; names of hosts have up to 255 characters. */
const PLAIN_ORIGIN = /^[\x20-\x7e]{1,300}$/;

/** By length of a header's name: 1 when a name of ours has that length. */
const MAY_MATTER: readonly number[] = Array.from({ length: 64 }, (_, length) =>
  ['via', ...LONG_WAY, ...READ.keys()].some((name) => name.length === length) ? 1 : 0,
);
