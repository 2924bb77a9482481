// Splits the raw request target without decoding it: paths are bytes.
import { ServiceError } from '../errors.js';
import { type ParsedHandle, parseHandle } from '../handle/handle.js';

export interface Target {
  /** Raw path, from its first slash up to the first `?`. */
  path: string;
  /** Raw query without the `?`; empty when there is none. */
  query: string;
}

/**
 * Splits a request target at its first `?`; the absolute form (RFC 9112 §3.2.2) loses scheme and host, and an empty
 * path is `/` (RFC 9110 §4.2.3). The name of an interface is lower-cased only here, so that every later step may
 * compare it exactly.
 */
export function readTarget(rawTarget: string): Target {
  const target = rawTarget.startsWith('/') ? rawTarget : rawTarget.replace(ORIGIN, '/');
  const mark = target.indexOf('?');
  if (mark === -1) return { path: withLowerCaseName(target), query: '' };
  return { path: withLowerCaseName(target.slice(0, mark)), query: target.slice(mark + 1) };
}

/** With the slash behind it, where there is one. */
const ORIGIN = /^[a-z][a-z\d+.-]*:\/\/[^/?]*\/?/i;

/** The origin form of a request target (RFC 9112 §3.2.1). */
export const originForm = ({ path, query }: Target): string => (query === '' ? path : `${path}?${query}`);

const SPELLED_IN_LOWER_CASE = /^\/api\/(?:handles|v2(?:\/handles)?)(?=\/|$)/i;

/** A Handle server takes `/API/handles/…` for the interface (recording "unknown: GET /API/handles/"). */
const withLowerCaseName = (path: string): string =>
  path.startsWith('/api/handles/') ? path : path.replace(SPELLED_IN_LOWER_CASE, (name) => name.toLowerCase());

/** The interface that a path belongs to, whether or not something is there. */
export type Owner = 'record' | 'v2' | 'redirect';

/** The paths of the APIs in any case: none of them is a handle for browsers. */
const OF_API = /^\/(?:api|hrls)(?:\/|$)/i;
const OF_V2 = /^\/api\/v2(?:\/|$)/;

export function ownerOf(path: string): Owner {
  if (!OF_API.test(path)) return 'redirect';
  return OF_V2.test(path) ? 'v2' : 'record';
}

/** The part of the path after `/api/handles` and one slash, or undefined when it is another path. */
export function rawHandleOf(path: string): string | undefined {
  if (path === '/api/handles') return '';
  return path.startsWith('/api/handles/') ? path.slice('/api/handles/'.length) : undefined;
}

/** `/api/handles?prefix=…` names no handle: it lists those under a prefix. */
export const isList = (rawHandle: string, parameters: URLSearchParams): boolean =>
  rawHandle === '' && parameters.has('prefix');

/** @throws ServiceError when the path is not a valid handle */
export function readHandle(rawHandle: string): string {
  const parsed = parseHandle(rawHandle);
  if (parsed.ok) return parsed.handle;
  throw problemOf(parsed.problem);
}

function problemOf(problem: Extract<ParsedHandle, { ok: false }>['problem']): ServiceError {
  switch (problem) {
    case 'empty':
      return new ServiceError('EMPTY_HANDLE');
    case 'too-long':
      return new ServiceError('HANDLE_TOO_LONG');
    case 'bad-escape':
      return new ServiceError('BAD_PATH', { detail: 'a % is not followed by two hex digits' });
    case 'null-byte':
      return new ServiceError('BAD_PATH', { detail: '%00 cannot be part of a handle' });
  }
}

/**
 * A request that names no handle is forwarded as it came, so its path must be plain. A server behind us that folds dot
 * segments, or decodes a path twice, would otherwise find a handle in it that was not fenced here, and that the
 * deletion rules have not seen.
 *
 * @throws ServiceError BAD_PATH
 */
export function assertPlain(path: string): void {
  if (isPlain(path)) return;
  throw new ServiceError('BAD_PATH', {
    message:
      'Only in a handle: dot segments, empty segments, backslashes, control characters, bytes beyond UTF-8',
  });
}

/** The characters of a path (RFC 3986 §3.3). */
const PATH = /^\/(?:[\w.~!$&'()*+,;=:@/-]|%[\da-f]{2})*$/i;

const MAX_ENCODING_LAYERS = 4;

/** Whether it stays a plain path each time it is decoded once more. */
function isPlain(path: string): boolean {
  if (!PATH.test(path)) return false;
  let text: string | undefined = path;
  for (let layer = 0; layer < MAX_ENCODING_LAYERS; layer++) {
    if (text === undefined || !hasPlainSegments(text)) return false;
    const decoded = decodeOnce(text);
    if (decoded === text) return true;
    text = decoded;
  }
  return false;
}

/** An empty segment is allowed at the end. To some servers a segment ends at its `;`. */
function hasPlainSegments(path: string): boolean {
  if (/[\\\x00-\x1f\x7f]/.test(path)) return false;
  const segments = path.split('/').slice(1);
  if (segments.at(-1) === '') segments.pop();
  return segments.every((segment) => !/^(\.{0,2})(;|$)/.test(segment));
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Undefined for bytes that are not UTF-8. Some servers read the overlong form `%c0%ae` as a dot. */
function decodeOnce(text: string): string | undefined {
  try {
    return text.replace(/(?:%[\da-f]{2})+/gi, (escaped) =>
      utf8.decode(Buffer.from(escaped.replaceAll('%', ''), 'hex')),
    );
  } catch {
    return undefined;
  }
}
