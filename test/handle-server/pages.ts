// The redirecting pages that a handle server has in front of its records, as small as they can be.
import type { RecordStore } from './store.js';
import { decodeHandle, type Target } from './target.js';
import type { Reply } from './reply.js';
import { isPublic } from '../../src/handle/value.js';
import { DEFAULT_TTL } from './value.js';

const page = (status: number, title: string, headers: [string, string][] = []): Reply => ({
  status,
  headers,
  html: `<!DOCTYPE html><title>${title}</title><h1>${title}</h1>`,
});

/** `/<handle>` leads to the first URL of the record; `?noredirect` shows that there is one. */
export function redirectPage(
  { path, query }: Target,
  { store, now }: { store: RecordStore; now: () => number },
): Reply {
  const handle = decodeHandle(path);
  if (handle === '') return page(200, 'Demo Handle server');
  if (!store.isHomed(handle)) return page(400, 'Resolution Error');
  const record = store.get(handle);
  if (record === undefined) return page(404, 'Not Found');
  const url = record.find((value) => value.type === 'URL' && isPublic(value));
  if (url === undefined || query.startsWith('noredirect')) return page(200, 'Handle Values');
  const ttlSeconds = typeof url.ttl === 'number' ? url.ttl : DEFAULT_TTL;
  return page(302, 'Handle Redirect', [
    ['Location', url.data.toString('utf8')],
    ['Expires', new Date(now() + ttlSeconds * 1000).toUTCString()],
  ]);
}
