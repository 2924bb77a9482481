// Decides which lists of a mirrored prefix are served, byte for byte like its Handle server.
import type { ListPage } from '../../handle/outcome.js';
import type { ListRequest } from '../../hooks.js';
import { pageIn } from '../../http/target.js';
import type { MirroredList } from './prefix-mirror.js';

/** Maximum handles of a response, and characters of their names: writing more would block the event loop. */
const MAX_HANDLES = 10_000;
const MAX_CHARS = 2 ** 20;
/** Maximum of a Java int, beyond which the server's index of a page overflows. */
const MAX_INT = 2 ** 31 - 1;

/** Parameters that have the same effect here and on a Handle server. */
const UNDERSTOOD: ReadonlySet<string> = new Set(['prefix', 'page', 'pageSize', 'pretty', 'callback']);
const NUMBER = /^\d{1,9}$/;

/** `isPublic` is whether the list is for anyone. */
export type FoundList = MirroredList & { isPublic: boolean };

/** Returns the page to serve from the mirror; undefined if the request must be forwarded. */
export function mirroredPage(
  { method, hasLogin, parameters }: ListRequest,
  list: FoundList | undefined,
): ListPage | undefined {
  if (list === undefined || !list.isPublic || !list.isWhole || !list.isCurrent) return undefined;
  if (hasLogin || (method !== 'GET' && method !== 'HEAD')) return undefined;
  const isUnderstood = [...parameters].every(
    ([name, text]) => UNDERSTOOD.has(name) && (!name.startsWith('page') || NUMBER.test(text)),
  );
  if (!isUnderstood) return undefined;
  const paging = pageIn(parameters);
  return isBounded(paging, list.handles) ? paging : undefined;
}

function isBounded({ page = 0, pageSize = MAX_INT }: ListPage, handles: readonly string[]): boolean {
  const [start, end] = [page * pageSize, (page + 1) * pageSize];
  if (end > MAX_INT || Math.min(end, handles.length) - start > MAX_HANDLES) return false;
  let chars = 0;
  for (let at = start; at < end && at < handles.length; at++) chars += handles[at]?.length ?? 0;
  return chars <= MAX_CHARS;
}
