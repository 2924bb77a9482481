// A record with a single URL value, at an address that may be filled from a template.
import { toBytes } from '../handle/bytes.js';
import { writeJson } from '../handle/json.js';
import type { Found } from '../handle/outcome.js';

/** Readable by administrators and the public, not writable. */
const PERMISSIONS = '1010';

/** The timestamp of DSpace's plugin for CNRI's server: 100 s after the epoch (HandlePlugin.java). */
const TIMESTAMP = '1970-01-01T00:01:40Z';

export function urlRecord(url: string, { index, ttl }: { index: number; ttl: number }): Found {
  const data = { format: 'string', value: url };
  const value = { index, type: 'URL', data, permissions: PERMISSIONS, ttl, timestamp: TIMESTAMP };
  return { kind: 'found', values: toBytes(writeJson([value])), ttls: [ttl] };
}

/**
 * Fills `{handle}`, `{prefix}` and `{suffix}`. URL delimiters are escaped, except slashes in the path.
 * Returns undefined if the path contains dot segments, which clients would remove (RFC 3986 §5.2.4).
 */
export function fillAddress(template: string, handle: string): string | undefined {
  const slash = handle.indexOf('/');
  const parts = { handle, prefix: handle.slice(0, slash), suffix: handle.slice(slash + 1) };
  const end = template.search(/[?#]/);
  const pathEnd = end === -1 ? template.length : end;
  const fill = (text: string, encode: (part: string) => string): string =>
    text.replace(/\{(handle|prefix|suffix)\}/g, (_, name: keyof typeof parts) => encode(parts[name]));
  const filled = fill(template.slice(0, pathEnd), (part) => encode(part).replaceAll('%2F', '/'));
  if (/\/\.{1,2}(?:\/|$)/.test(filled)) return undefined;
  return filled + fill(template.slice(pathEnd), encode);
}

/** Percent-encodes text. A lone surrogate, which JSON can contain and UTF-8 cannot, becomes U+FFFD. */
const encode = (part: string): string => encodeURIComponent(part.toWellFormed());
