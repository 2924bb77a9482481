// Every route whose response depends on the Handle server. The seed is the end of the handle.
import { type Asked, ask } from '../support/ask.js';
import type { BuiltProxy } from '../support/built-proxy.js';

const LOGIN = { Authorization: `Basic ${btoa('300%3A21.T1%2FUSER:password')}` };
const JSON_BODY = { 'Content-Type': 'application/json' };

interface Route {
  name: string;
  ask: (proxy: BuiltProxy, seed: number) => Promise<Asked>;
}

const get =
  (pathOf: (seed: number) => string, headers: Record<string, string> = {}) =>
  (proxy: BuiltProxy, seed: number): Promise<Asked> =>
    ask(proxy.url, pathOf(seed), { headers });

const put =
  (pathOf: (seed: number) => string, body: string) =>
  (proxy: BuiltProxy, seed: number): Promise<Asked> =>
    ask(proxy.url, pathOf(seed), { method: 'PUT', headers: { ...LOGIN, ...JSON_BODY }, body });

const record = (query = '') => `/api/handles/21.T11998/%s${query}`;
const at = (pattern: string) => (seed: number) => pattern.replace('%s', String(seed));

/** Reads come first because a write invalidates their entries. */
export const ROUTES: readonly Route[] = [
  { name: 'record', ask: get(at(record())) },
  { name: 'record again', ask: get(at(record())) },
  { name: 'pretty', ask: get(at(record('?pretty'))) },
  { name: 'callback', ask: get(at(record('?callback=f&pretty'))) },
  { name: 'filter', ask: get(at(record('?index=1&index=100&type=URL&type=HS_.'))) },
  { name: 'authoritative', ask: get(at(record('?auth=true'))) },
  { name: 'with a login', ask: get(at(record()), LOGIN) },
  { name: 'redirect', ask: get(at('/21.T11998/%s')) },
  { name: 'redirect by type', ask: get(at('/21.T11998/%s?type=URL&ignore_aliases'), { Accept: 'a/b' }) },
  { name: 'page', ask: get(at('/21.T11998/%s?noredirect'), { Accept: 'text/html' }) },
  { name: 'page as JSON', ask: get(at('/21.T11998/%s?noredirect'), { Accept: 'application/json' }) },
  { name: 'locations', ask: get(at('/21.T11998/%s?action=showurls')) },
  { name: 'v2', ask: get(at('/api/v2/handles/21.T11998/%s')) },
  { name: 'v2 with a login', ask: get(at('/api/v2/handles/21.T11998/%s'), LOGIN) },
  { name: 'v2 list', ask: get(at('/api/v2/handles/21.T%s/'), LOGIN) },
  { name: 'v2 list of records', ask: get(at('/api/v2/handles/21.T%s/'), { ...LOGIN, Depth: '1' }) },
  { name: 'v2 search', ask: get(at('/api/v2/handles/21.T%s/?URL=*&limit=2'), LOGIN) },
  { name: 'admin lookup', ask: (proxy, seed) => ask(proxy.adminUrl, `/cache?handle=21.T11998/${seed}`) },
  {
    name: 'v2 write',
    ask: put(at('/api/v2/handles/21.T11998/%s'), '[{"type":"URL","parsed_data":"https://example.org/"}]'),
  },
  { name: 'minting', ask: put(at(record('?mintNewSuffix=true')), '[]') },
];
