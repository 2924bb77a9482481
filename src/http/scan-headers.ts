// Reads the few request headers an answer can depend on, straight from the raw list.

export interface AskedHeaders {
  acceptEncoding: string | undefined;
  ifNoneMatch: string | undefined;
}

// Touching `req.headers` builds an object of all headers: 15 % of a whole answer.
const found: AskedHeaders = { acceptEncoding: undefined, ifNoneMatch: undefined };

/**
 * The headers of interest, or undefined when one is there that needs the long way: credentials, an
 * Origin, a body, a proxy's Via, a second If-None-Match. One object serves all calls.
 */
export function scanHeaders(raw: readonly string[]): AskedHeaders | undefined {
  found.acceptEncoding = undefined;
  found.ifNoneMatch = undefined;
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at] as string;
    // Most names have a length that none of ours has: Host, User-Agent, Connection.
    if (MAY_MATTER[name.length] !== 1) continue;
    if (!read(name.toLowerCase(), raw[at + 1] as string)) return undefined;
  }
  return found;
}

const LONG_WAY = new Set([
  'via',
  'origin',
  'authorization',
  'content-length',
  'transfer-encoding',
  'expect',
  'upgrade',
]);
const READ = ['accept-encoding', 'if-none-match'];

/** By length of a header's name: 1 when a name of ours has that length. */
const MAY_MATTER: readonly number[] = Array.from({ length: 64 }, (_, length) =>
  [...LONG_WAY, ...READ].some((name) => name.length === length) ? 1 : 0,
);

function read(name: string, value: string): boolean {
  if (name === 'accept-encoding') {
    if (found.acceptEncoding !== undefined) return false;
    found.acceptEncoding = value;
  } else if (name === 'if-none-match') {
    if (found.ifNoneMatch !== undefined) return false;
    found.ifNoneMatch = value;
  } else if (LONG_WAY.has(name)) return false;
  return true;
}
