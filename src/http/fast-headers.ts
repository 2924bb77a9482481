// Scans raw request headers for the few that a cached response depends on.

export interface FastHeaders {
  acceptEncoding: string | undefined;
  ifNoneMatch: string | undefined;
  origin: string | undefined;
  requestId: string | undefined;
  /** Whether the request has `Authorization`, which forbids a shared response. */
  hasCredentials: boolean;
  /** Whether `Via` contains this proxy's pseudonym (RFC 9110 §7.6.3). */
  isLoop: boolean;
}

/** Returns the same object on every call; copy it to retain it. */
export type ScanHeaders = (raw: readonly string[]) => FastHeaders;

/** Creates a scanner; `pseudonym` is this proxy's name in `Via`. */
export function createScanHeaders(pseudonym: string): ScanHeaders {
  // Avoids `req.headers`: an object of all headers would be a large part of a hit's cost.
  const found: FastHeaders = {
    acceptEncoding: undefined,
    ifNoneMatch: undefined,
    origin: undefined,
    requestId: undefined,
    hasCredentials: false,
    isLoop: false,
  };

  function read(name: string, value: string): void {
    if (name === 'via') found.isLoop ||= value.includes(pseudonym);
    else if (name === 'authorization') found.hasCredentials = true;
    const field = FIELDS.get(name);
    if (field === undefined) return;
    const before = found[field];
    // Joins repeated headers like `req.headers`.
    found[field] = before === undefined ? value : `${before}, ${value}`;
  }

  return function scanHeaders(raw) {
    found.acceptEncoding = undefined;
    found.ifNoneMatch = undefined;
    found.origin = undefined;
    found.requestId = undefined;
    found.hasCredentials = false;
    found.isLoop = false;
    for (let at = 0; at < raw.length; at += 2) {
      const name = raw[at] as string;
      // Skips most headers, such as Host, User-Agent and Connection, by length alone.
      if (NAME_LENGTHS[name.length] === 1) read(name.toLowerCase(), raw[at + 1] as string);
    }
    return found;
  };
}

const FIELDS = new Map<string, 'acceptEncoding' | 'ifNoneMatch' | 'origin' | 'requestId'>([
  ['accept-encoding', 'acceptEncoding'],
  ['if-none-match', 'ifNoneMatch'],
  ['origin', 'origin'],
  ['x-request-id', 'requestId'],
]);

/** Contains 1 at each length of a scanned header name, else 0. */
const NAME_LENGTHS: readonly number[] = Array.from({ length: 64 }, (_, length) =>
  ['via', 'authorization', ...FIELDS.keys()].some((name) => name.length === length) ? 1 : 0,
);
