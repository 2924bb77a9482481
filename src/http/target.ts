// Parses the raw request target: the path, which is not decoded because paths are bytes, and the query parameters.
import { ServiceError } from '../errors.js';
import { tryDecode } from '../handle/bytes.js';
import type { ListPage } from '../handle/outcome.js';
import type { Selection } from '../handle/value.js';

export interface Target {
  /** The target as received. */
  raw: string;
  /** Raw path, from its first slash up to the first `?`. */
  path: string;
  /** Raw query without the `?`; empty if there is none. */
  query: string;
  /** The part of the path after `/api/handles/`; undefined for any other path. */
  rawHandle: string | undefined;
}

/**
 * Splits a request target at its first `?`. Drops scheme and host of the absolute form (RFC 9112
 * §3.2.2), reads an empty path as `/` (RFC 9110 §4.2.3), and writes the interface name plainly, so that all
 * later steps compare it exactly.
 */
export function readTarget(raw: string): Target {
  const target = raw.startsWith('/') ? raw : raw.replace(ORIGIN, '/');
  const mark = target.indexOf('?');
  const path = withPlainName(mark === -1 ? target : target.slice(0, mark));
  const query = mark === -1 ? '' : target.slice(mark + 1);
  return { raw, path, query, rawHandle: rawHandleOf(path) };
}

/** Matches scheme and host, with the following slash, if any. */
const ORIGIN = /^[a-z][a-z\d+.-]*:\/\/[^/?]*\/?/i;

function rawHandleOf(path: string): string | undefined {
  if (path === '/api/handles') return '';
  return path.startsWith('/api/handles/') ? path.slice('/api/handles/'.length) : undefined;
}

/** Returns the origin form of a request target (RFC 9112 §3.2.1). */
export const originForm = (path: string, query: string): string => (query === '' ? path : `${path}?${query}`);

const NAMES = ['/api/handles', '/api/v2/handles', '/api/v2'] as const;

/** Matches the first letter of `/api` in all spellings. Few redirects have it. */
const MAY_BE_API = /^\/{1,2}(?:a|%[46]1)/i;

/**
 * Writes the interface name in lower case, without escapes and with one slash in front: Handle servers accept all
 * these spellings (recording "unknown: GET /API/handles/").
 */
function withPlainName(path: string): string {
  if (path.startsWith('/api/handles/') || !MAY_BE_API.test(path)) return path;
  const segments = path.replace(/^\/\//, '/').split('/');
  const first = segments.slice(0, 4).map(plainSegment);
  const name = NAMES.find((each) => first.slice(0, each.split('/').length).join('/') === each);
  return name === undefined ? path : [name, ...segments.slice(name.split('/').length)].join('/');
}

const plainSegment = (segment: string): string =>
  segment.replace(/%[3-7][\da-f]/gi, decodeURIComponent).toLowerCase();

/**
 * Returns the target as Express parses its path without loss: `#` would end the path, and white space would be
 * escaped or cut. A target without a path matches no route.
 */
export const routableTarget = ({ path, query }: Target): string =>
  originForm(path.startsWith('/') ? path.replace(/[#\s\ufeff]/g, encodeURIComponent) : '*', query);

/** Interface of a path, even of an unknown path. */
export type Owner = 'record' | 'v2' | 'redirect';

/** Matches API paths, which never redirect, regardless of letter case. */
const OF_API = /^\/(?:api|hrls)(?:\/|$)/i;

/** Matches the paths below `/` that are no API paths. */
export const OUTSIDE_APIS = /^\/(?!(?:api|hrls)(?:\/|$))[^]/i;

const OF_V2 = /^\/api\/v2(?:\/|$)/;

export function ownerOf(path: string): Owner {
  if (!OF_API.test(path)) return 'redirect';
  return OF_V2.test(path) ? 'v2' : 'record';
}

const OF_SESSIONS = /^\/api\/sessions(?:[/?]|$)/;

export const isOfSessions = (target: string): boolean => OF_SESSIONS.test(target);

/**
 * Asserts a plain path, because a request without a handle is forwarded unchanged. A server that
 * resolves dot segments, or decodes twice, could otherwise find a handle in the path that
 * has bypassed the write fence and the deletion rules.
 *
 * @throws ServiceError BAD_PATH
 */
export function assertPlain(path: string): void {
  if (isPlainPath(path)) return;
  throw new ServiceError('BAD_PATH', {
    message:
      'Only in a handle: dot segments, empty segments, backslashes, control characters, bytes beyond UTF-8',
  });
}

/** Matches the characters of a path (RFC 3986 §3.3). */
const PATH = /^\/(?:[\w.~!$&'()*+,;=:@/-]|%[\da-f]{2})*$/i;

const MAX_ENCODING_LAYERS = 4;

/** Whether the path is plain in every decoding layer. */
function isPlainPath(path: string): boolean {
  if (!PATH.test(path)) return false;
  let text: string | undefined = path;
  for (let layer = 0; layer < MAX_ENCODING_LAYERS; layer++) {
    if (text === undefined || !hasPlainSegments(text)) return false;
    const decoded: string | undefined = tryDecode(decodeOnce, text);
    if (decoded === text) return true;
    text = decoded;
  }
  return false;
}

/** Whether all segments are plain; the last may be empty. Some servers cut a segment at `;`. */
function hasPlainSegments(path: string): boolean {
  if (/[\\\x00-\x1f\x7f]/.test(path)) return false;
  const segments = path.split('/').slice(1);
  if (segments.at(-1) === '') segments.pop();
  return segments.every((segment) => !/^(\.{0,2})(;|$)/.test(segment));
}

/** Decodes one layer. @throws for invalid UTF-8, because some servers read the overlong form `%c0%ae` as a dot */
const decodeOnce = (text: string): string => text.replace(/(?:%[\da-f]{2})+/gi, decodeURIComponent);

/** Matches escapes in sequence, or a `%` that begins none. */
const ESCAPES = /(?:%[\da-f]{2})+|%/gi;

/** Writes escapes as UTF-8, with U+FFFD for other bytes, as they are decoded (URL Standard, section 5.1). */
const asUtf8 = (escapes: string): string =>
  escapes === '%' ? '%25' : encodeURIComponent(Buffer.from(escapes.replaceAll('%', ''), 'hex').toString());

/** Parses a query or a form, without the error that Node.js makes for each parameter whose escapes are no UTF-8 (12 µs). */
export const parseParameters = (query: string): URLSearchParams =>
  new URLSearchParams(
    tryDecode(decodeURIComponent, query) === undefined ? query.replace(ESCAPES, asUtf8) : query,
  );

export interface Format {
  pretty: boolean;
  /** Sanitised JSONP function name; may be empty. */
  callback?: string;
}

export interface RecordQuery extends Selection {
  authoritative: boolean;
  /** False only if the caller also requests private values. */
  publicOnly: boolean;
}

export function readFormat(parameters: URLSearchParams): Format {
  const callback = parameters.get('callback');
  const pretty = readFlag(parameters.get('pretty'));
  return callback === null ? { pretty } : { pretty, callback: cleanCallback(callback) };
}

/**
 * Asserts that each `%` is an escape, as Handle servers do, although form data may contain others (URL
 * Standard, section 5.1). @throws ServiceError BAD_PARAMETER
 */
export function assertEscaped(query: string): void {
  if (!/%(?![\da-f]{2})/i.test(query)) return;
  throw new ServiceError('BAD_PARAMETER', { detail: 'a % is not followed by two hex digits' });
}

/**
 * Parses a record query. Accepts `cert` and `doNotRefer`, which do not affect the JSON (recordings
 * "cert=true", "doNotRefer=true"), and ignores unknown parameters.
 *
 * @throws ServiceError BAD_PARAMETER for an index that is not an integer
 */
export function readRecordQuery(parameters: URLSearchParams): RecordQuery {
  const publicOnly = parameters.get('publicOnly');
  return {
    indexes: parameters.getAll('index').map(readJavaInt),
    types: parameters.getAll('type'),
    authoritative: readFlag(parameters.get('auth')),
    publicOnly: publicOnly === null || readFlag(publicOnly),
  };
}

/** Parses a flag: true if bare, `yes` or `true`; false if absent or anything else (recording "pretty=false"). */
const readFlag = (value: string | null): boolean =>
  value !== null && ['', 'yes', 'true'].includes(value.toLowerCase());

/** Parses a Java int: sign, decimal digits of any script, 32 bits (recordings "index=+1", "index=abc", "index=1,2"). */
function readJavaInt(value: string): number {
  const digits = value.replace(/\p{Nd}/gu, toAsciiDigit);
  const index = Number(digits);
  if (!/^[+-]?\d+$/.test(digits) || index > 0x7fffffff || index < -0x80000000) {
    throw new ServiceError('BAD_PARAMETER', {
      detail: `index has to be a whole number, not ${JSON.stringify(value)}`,
    });
  }
  return index;
}

/** Converts a digit of the Basic Multilingual Plane, where each ten begin at a code that ends in 0 or 6. */
function toAsciiDigit(digit: string): string {
  const last = digit.charCodeAt(0) & 0xf;
  const begins0 = /\p{Nd}/u.test(String.fromCharCode(digit.charCodeAt(0) & ~0xf));
  return digit.length > 1 ? digit : String(begins0 ? last : last - 6);
}

/** Replaces invalid name characters with `_` (recording "callback with bad characters"). */
const cleanCallback = (name: string): string =>
  name.replace(/[^]/g, (char, at: number) => (isNameCharacter(char, at) ? char : '_'));

const isNameCharacter = (char: string, at: number): boolean =>
  /[A-Za-z_$]/.test(char) ||
  (at > 0 && /\d/.test(char)) ||
  (char >= '\u00A0' && char !== '\u2028' && char !== '\u2029');

/** Returns the requested page; an empty object unless both numbers are set. */
export function pageIn(parameters: URLSearchParams): ListPage {
  const [page = '', pageSize = ''] = ['page', 'pageSize'].map((name) => parameters.get(name) ?? '');
  const areNumbers = [page, pageSize].every((text) => /^\d{1,9}$/.test(text));
  return areNumbers ? { page: Number(page), pageSize: Number(pageSize) } : {};
}
