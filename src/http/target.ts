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
 * Splits a request target at its first `?`; the absolute form (RFC 9112 §3.2.2) loses its origin. The name of
 * an interface is lower-cased only here, so that every later step may compare it exactly.
 */
export function readTarget(rawTarget: string): Target {
  const target = rawTarget.startsWith('/') ? rawTarget : rawTarget.replace(/^https?:\/\/[^/?]*/i, '');
  const mark = target.indexOf('?');
  if (mark === -1) return { path: withLowerCaseName(target), query: '' };
  return { path: withLowerCaseName(target.slice(0, mark)), query: target.slice(mark + 1) };
}

/** The origin form of a request target (RFC 9112 §3.2.1). */
export const originForm = ({ path, query }: Target): string => (query === '' ? path : `${path}?${query}`);

const INTERFACE = /^\/api\/(?:handles|v2(?:\/handles)?)(?=\/|$)/i;

/** A Handle server takes `/API/handles/…` for the interface (recording "unknown: GET /API/handles/"). */
const withLowerCaseName = (path: string): string =>
  path.startsWith('/api/handles/') ? path : path.replace(INTERFACE, (name) => name.toLowerCase());

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
