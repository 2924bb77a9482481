// The raw request target, taken apart without decoding: paths are bytes (design decision 13).

export interface Target {
  /** Raw path, from its first slash up to the first `?`. */
  path: string;
  /** Raw query without the `?`; empty when there is none. */
  query: string;
}

/** Splits a request target at its first `?`; the absolute form (RFC 9112 §3.2.2) loses its origin. */
export function readTarget(rawTarget: string): Target {
  const target = rawTarget.startsWith('/') ? rawTarget : rawTarget.replace(/^https?:\/\/[^/?]*/i, '');
  const mark = target.indexOf('?');
  if (mark === -1) return { path: target, query: '' };
  return { path: target.slice(0, mark), query: target.slice(mark + 1) };
}

/** What stands in a request line that is not sent to a proxy (RFC 9112 §3.2.1). */
export const originForm = ({ path, query }: Target): string => (query === '' ? path : `${path}?${query}`);

/** The part of the path after `/api/handles` and one slash, or undefined when it is another path. */
export function rawHandleOf(path: string): string | undefined {
  if (path === '/api/handles') return '';
  return path.startsWith('/api/handles/') ? path.slice('/api/handles/'.length) : undefined;
}
