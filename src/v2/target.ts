// Which resource of ePIC v2 a raw path names.
import { parseHandle } from '../handle/handle.js';
import { readHandle } from '../record/resolve.js';

/** `rawHandle` is the part of the path as the client wrote it, without the slash that is tolerated. */
export interface HandleTarget {
  kind: 'handle';
  handle: string;
  rawHandle: string;
}

export interface CollectionTarget {
  kind: 'collection';
  prefix: string;
}

/** The list of prefixes, a prefix as a collection, or a handle. */
export type V2Target = { kind: 'prefixes' } | CollectionTarget | HandleTarget;

const BASE = '/api/v2/handles';

/**
 * Reads a path. A slash after a prefix or a suffix changes nothing, as clients of v2 send it; any
 * other slash, `%2F` or plain, belongs to the suffix, and a plus is a plus.
 *
 * @throws ServiceError when the path is under `/api/v2/handles` but no handle
 */
export function readV2Target(path: string): V2Target | undefined {
  if (path === BASE || path === `${BASE}/`) return { kind: 'prefixes' };
  if (!path.startsWith(`${BASE}/`)) return undefined;
  const raw = path.slice(BASE.length + 1);
  const bare = raw.replace(/\/$/, '');
  const prefix = parseHandle(bare);
  if (prefix.ok && !prefix.handle.includes('/')) return { kind: 'collection', prefix: prefix.handle };
  // `P//` cannot mean `P/`, which is the collection: there the slash is the suffix.
  const rawHandle = /^[^/]+\/$/.test(bare) ? raw : bare;
  const handle = readHandle(rawHandle);
  return { kind: 'handle', handle, rawHandle };
}
