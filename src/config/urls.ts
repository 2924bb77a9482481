// The two addresses in the configuration: what they may look like, and how they are written down.

/** The origin of an http(s) address that has nothing but a host and a port; undefined for any other. */
export function readOrigin(text: string): string | undefined {
  const url = parseUrl(text);
  if (url === undefined || !['http:', 'https:'].includes(url.protocol)) return undefined;
  const bare = url.username + url.password + url.search + url.hash === '' && url.pathname === '/';
  return bare && !/[?#@]/.test(text) ? url.origin : undefined;
}

/** A redis(s) address as it was given; undefined for any other. */
export function readRedisUrl(text: string): string | undefined {
  const url = parseUrl(text);
  return url !== undefined && ['redis:', 'rediss:'].includes(url.protocol) && url.hostname !== ''
    ? text
    : undefined;
}

/** A node of a Sentinel or Cluster set-up as an address; `host:port` alone will do. */
export function readRedisNode(text: string): string | undefined {
  const isBare = /^(\[[\da-f:.]+\]|[\w.-]+)(:\d{1,5})?$/i.test(text);
  return readRedisUrl(isBare ? `redis://${text}` : text);
}

/** One or more fingerprints, separated by commas. */
export function readFingerprints(text: string): string | undefined {
  const read = text.split(',').map((one) => readFingerprint(one.trim()));
  return read.every((one) => one !== undefined) ? read.join(',') : undefined;
}

/** The SHA-256 fingerprint of a certificate in the form node:tls shows it: `AB:CD:…`. */
function readFingerprint(text: string): string | undefined {
  const digits = text.replaceAll(':', '').toUpperCase();
  const isSpelled = /^([0-9A-F]{64}|([0-9A-F]{2}:){31}[0-9A-F]{2})$/i.test(text);
  return isSpelled ? (digits.match(/../g) ?? []).join(':') : undefined;
}

/** An address in its parts, or undefined when it is none. */
export function parseUrl(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined;
}

/** An http(s) address, perhaps with a path, and without a slash at its end; undefined for any other. */
export function readBaseUrl(text: string): string | undefined {
  const url = parseUrl(text);
  if (url === undefined || !['http:', 'https:'].includes(url.protocol) || /[?#@]/.test(text))
    return undefined;
  return url.origin + url.pathname.replace(/\/+$/, '');
}
