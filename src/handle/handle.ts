// Handles as text: parsed from paths or copied URLs, encoded as paths, folded for comparison, matched by patterns.
import { type ErrorCode, ServiceError } from '../errors.js';

/** Maximum length of a handle (UTF-8 bytes), a protocol constant (hdllib Common.java). */
export const MAX_HANDLE_BYTES = 2048;

/** A requested handle, parsed once. */
export interface HandleRef {
  /** Decoded, in the client's spelling. */
  text: string;
  /** Cache key of the record. */
  key: string;
  /** Upper-cased. */
  prefix: string;
}

/**
 * Refers to a handle. A bare prefix is the same record as its handle under `0.NA/` (recording "resolve: prefix only"), so a
 * write by one name invalidates both.
 */
export function handleRef(text: string, caseSensitive: boolean): HandleRef {
  const slash = text.indexOf('/');
  const key = foldHandle(slash === -1 ? PREFIX_RECORDS + text : text, caseSensitive);
  return { text, key, prefix: slash === -1 ? key.slice(PREFIX_RECORDS.length) : key.slice(0, slash) };
}

/** Refers to a handle whose key is upper-cased. */
export const foldedRef = (text: string): HandleRef => handleRef(text, false);

/** Refers to a handle whose key retains the case of its suffix. */
export const exactRef = (text: string): HandleRef => handleRef(text, true);

/** Creates a reference from a cache key, which is also a valid spelling. */
export const refOfKey = (key: string): HandleRef => ({
  text: key,
  key,
  prefix: key.slice(0, key.indexOf('/')),
});

/** Returns the reference to a handle's prefix record: `0.NA/21.T1` for `21.T1/abc`. */
export function prefixRecordOf({ text, prefix }: HandleRef): HandleRef {
  const [spelled = ''] = text.split('/', 1);
  return { text: PREFIX_RECORDS + spelled, key: PREFIX_RECORDS + prefix, prefix: GLOBAL_PREFIX };
}

/**
 * Whether the text can be a handle: a prefix starts with a digit (`10.5072`, `2014`, `0.NA`) or contains a
 * dot (`loc.music`). Anything else, for example `/foo/21.T11998/x`, is a mistyped API path: response code 100
 * would make clients treat the handle as missing.
 */
export const hasPrefix = (text: string): boolean => /^(?:\d|[^/]*\.)/.test(text);

export type ParsedHandle =
  | { ok: true; handle: string }
  | { ok: false; problem: 'bad-escape' | 'null-byte' | 'empty' | 'too-long' };

/**
 * Parses the handle in a raw request path, after `/api/handles/`. Decodes once, as UTF-8 bytes (invalid
 * sequences become U+FFFD, recording "invalid UTF-8 percent bytes"). `+`, `;`, `//`, dots and a trailing
 * slash belong to the handle.
 *
 * @example parseHandle('21.T1%2Fa+b/') // { ok: true, handle: '21.T1/a+b/' }
 */
export function parseHandle(rawPath: string): ParsedHandle {
  const bytes = decodePercentBytes(rawPath);
  return bytes === undefined ? { ok: false, problem: 'bad-escape' } : checkHandle(bytes);
}

function checkHandle(bytes: Buffer): ParsedHandle {
  if (bytes.length === 0) return { ok: false, problem: 'empty' };
  if (bytes.includes(0)) return { ok: false, problem: 'null-byte' };
  if (bytes.length > MAX_HANDLE_BYTES) return { ok: false, problem: 'too-long' };
  return { ok: true, handle: bytes.toString('utf8') };
}

/** Parses a handle as `parseHandle` does. @throws ServiceError for an invalid handle */
export const readHandle = (rawPath: string): string => textOfHandle(parseHandle(rawPath));

/** Does the same with a handle that is not encoded, of any length. A lone surrogate becomes U+FFFD. */
export const readPlainHandle = (text: string): string =>
  textOfHandle(
    text.length > MAX_HANDLE_BYTES ? { ok: false, problem: 'too-long' } : checkHandle(Buffer.from(text)),
  );

function textOfHandle(parsed: ParsedHandle): string {
  if (parsed.ok) return parsed.handle;
  const [code, detail] = HANDLE_ERRORS[parsed.problem];
  throw new ServiceError(code, { detail });
}

type HandleProblem = Extract<ParsedHandle, { ok: false }>['problem'];

const HANDLE_ERRORS: Readonly<Record<HandleProblem, [code: ErrorCode, detail?: string]>> = {
  empty: ['EMPTY_HANDLE'],
  'too-long': ['HANDLE_TOO_LONG'],
  'bad-escape': ['BAD_PATH', 'a % is not followed by two hex digits'],
  'null-byte': ['BAD_PATH', '%00 cannot be part of a handle'],
};

/** Percent-decodes text to bytes; undefined for a malformed escape. */
function decodePercentBytes(raw: string): Buffer | undefined {
  if (!raw.includes('%')) return Buffer.from(raw, 'latin1');
  const bytes = Buffer.allocUnsafe(raw.length);
  let length = 0;
  for (let at = 0; at < raw.length; at++) {
    if (raw[at] !== '%') {
      length = bytes.writeUInt8(raw.charCodeAt(at) & 0xff, length);
      continue;
    }
    const hex = raw.slice(at + 1, at + 3);
    if (!/^[0-9a-f]{2}$/i.test(hex)) return undefined;
    length = bytes.writeUInt8(parseInt(hex, 16), length);
    at += 2;
  }
  return bytes.subarray(0, length);
}

/**
 * Encodes a handle as a URL path, escaping all URL syntax. WHATWG URL and http-proxy remove dot segments and
 * doubled slashes, so a handle with either is written with `%2F`, which servers treat as a slash (recording
 * "%2F slash"). A lone surrogate, which JSON can contain and UTF-8 cannot, becomes U+FFFD.
 */
export function handleToPath(handle: string): string {
  if (UNRESERVED_PATH.test(handle)) return handle;
  const encoded = encodeURIComponent(handle.toWellFormed());
  return isFoldedByUrlParsers(handle) ? encoded : encoded.replaceAll('%2F', '/');
}

/** Matches paths that need no escaping: unreserved characters (RFC 3986 §2.3), no leading dot. */
const UNRESERVED_PATH = /^[\w~-][\w.~-]*(?:\/[\w~-][\w.~-]*)*$/;

const isFoldedByUrlParsers = (handle: string): boolean => /(^|\/)(\.{0,2}\/|\.{1,2}$)/.test(handle);

/**
 * Folds a handle to ASCII upper case for comparison. On a case-sensitive server the suffix is not folded, except
 * under `0.NA/` and other `0.` prefixes. Non-ASCII letters are never folded.
 */
export function foldHandle(handle: string, caseSensitive: boolean): string {
  if (!caseSensitive) return upperAscii(handle);
  const slash = handle.indexOf('/');
  const isGlobal = slash === -1 || handle.startsWith('0.');
  return isGlobal ? upperAscii(handle) : upperAscii(handle.slice(0, slash)) + handle.slice(slash);
}

/** Prefix of all prefix records. */
export const GLOBAL_PREFIX = '0.NA';
const PREFIX_RECORDS = `${GLOBAL_PREFIX}/`;

/** Characters of a name that count as one entry of a bound: usual names are shorter, but anyone may send kilobytes. */
export const CHARS_PER_ENTRY = 256;

/** Returns the number of entries that a name counts as. */
export const entriesOf = ({ length }: string): number => 1 + Math.floor(length / CHARS_PER_ENTRY);

/** Upper-cases ASCII letters only. */
export function upperAscii(text: string): string {
  // Most handles are ASCII, for which the built-in function is equivalent and faster.
  if (/^[\0-\x7f]*$/.test(text)) return text.toUpperCase();
  return text.replace(/[a-z]+/g, (letters) => letters.toUpperCase());
}

/** The record whose namespace applies to all prefixes: 0.NA/0.NA. */
export const GLOBAL_NAMESPACE = foldedRef(PREFIX_RECORDS + GLOBAL_PREFIX);

const RESOLVER = /^https?:\/{1,2}(?:hdl\.handle\.net|(?:dx\.)?doi\.org)\//i;
const SCHEME = /^(?:info:(?:doi|hdl)\/|(?:urn:)?(?:doi|hdl):|urn:eidr:)/i;

/**
 * Removes leading slashes, surrounding space, a resolver URL and a scheme from a decoded path. In a URN, a
 * first colon without a preceding slash counts as the slash (recordings "redirect: hdl: prefix" to "leading
 * spaces/trailing nbsp"; HDLProxy 9.3.1 resolves `urn:hdl:21.T11998/uc:a@x`).
 *
 * @example handleInUrl('/urn:hdl:21.T1:abc') // '21.T1/abc'
 */
export function handleInUrl(path: string): string {
  const bare = trimCopied(path.replace(/^\/+/, '')).replace(RESOLVER, '');
  const scheme = SCHEME.exec(bare)?.[0];
  if (scheme === undefined) return bare;
  const handle = bare.slice(scheme.length);
  return scheme.toLowerCase().startsWith('urn:') ? handle.replace(/^([^/:]*):/, '$1/') : handle;
}

/** Removes trailing slashes in linear time; `/\/+$/` is quadratic for many slashes before a different character. */
export function withoutSlashesAtEnd(text: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === '/') end--;
  return text.slice(0, end);
}

const ZERO_WIDTH_SPACE = '\u200B';

/** Trims space, including trailing zero-width spaces from a copied page or PDF, which `trim` keeps. */
function trimCopied(text: string): string {
  let end = text.length;
  while (end > 0 && (text[end - 1] === ZERO_WIDTH_SPACE || text[end - 1]?.trim() === '')) end--;
  return text.slice(0, end).trim();
}

/** Compiles patterns, of which a text has to match one; ASCII letters match in either case. */
export function compileGlobs(patterns: readonly string[]): (text: string) => boolean {
  const globs = patterns.map((pattern) => upperAscii(pattern).split('*'));
  return function matchesAnyGlob(text) {
    const folded = upperAscii(text);
    return globs.some((literals) => matchesInSequence(folded, literals));
  };
}

/**
 * Whether a text consists of literals in sequence, with any text between them. A regular expression would try every
 * combination: with four `*` and a handle of a thousand characters, this takes a minute.
 */
export function matchesInSequence(text: string, literals: readonly string[]): boolean {
  const [first = ''] = literals;
  if (literals.length === 1) return text === first;
  if (!text.startsWith(first)) return false;
  let at = first.length;
  for (const part of literals.slice(1, -1)) {
    const found = findPart(text, part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  const last = literals.at(-1) ?? '';
  return text.length - last.length >= at && text.endsWith(last);
}

/** Maximum product of lengths for `indexOf`: 4 ms if it compares the part at every place. */
const MAX_COMPARISONS = 4_000_000;

/** As `indexOf`, which takes a second for a megabyte of like characters and a long part; this takes linear time (Knuth, Morris, Pratt). */
function findPart(text: string, part: string, from: number): number {
  if (part.length > text.length - from) return -1;
  if (part.length * (text.length - from) <= MAX_COMPARISONS) return text.indexOf(part, from);
  const borders = new Uint32Array(part.length);
  for (let at = 1; at < part.length; at++)
    borders[at] = lengthen(part, borders, borders[at - 1] ?? 0, part.charCodeAt(at));
  let matched = 0;
  for (let at = from; at < text.length; at++) {
    matched = lengthen(part, borders, matched, text.charCodeAt(at));
    if (matched === part.length) return at + 1 - matched;
  }
  return -1;
}

/** Returns how many characters of `part` match up to and with `code`, if `matched` matched before it. */
function lengthen(part: string, borders: Uint32Array, matched: number, code: number): number {
  let length = matched;
  while (length > 0 && part.charCodeAt(length) !== code) length = borders[length - 1] ?? 0;
  return part.charCodeAt(length) === code ? length + 1 : 0;
}

const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Escapes control characters and direction marks like JSON: untrusted text could disguise itself or run commands. */
export const printableText = (text: string): string =>
  text.replace(UNSAFE, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`);
