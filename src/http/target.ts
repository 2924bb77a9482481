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
