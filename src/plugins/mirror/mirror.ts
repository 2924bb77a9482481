// Mirrors the configured prefixes, whose handles survive an outage of any length, and decides which lists are served.
import type { Started } from '../../plugin.js';
import type { Host } from '../../host.js';
import { oneAtATime } from '../../clock.js';
import { basicLogin, isLoopback } from '../../config/addresses.js';
import { FOREVER_MS } from '../../config/fields.js';
import type { ListPage } from '../../handle/outcome.js';
import { type HandleRef, refOfKey } from '../../handle/handle.js';
import type { ListRequest } from '../../hooks.js';
import { createReportUnexpected } from '../../http/error-reply.js';
import { pageIn } from '../../http/target.js';
import { exceptServiceError } from '../../resolver/loader.js';
import { OWN_WORK } from '../../upstream/caller.js';
import type { OriginServer } from '../../upstream/contract.js';
import type { ListAnswer } from '../../upstream/reply.js';
import { assertFound } from '../../upstream/upstreams.js';
import { PAGE_SIZE, listNames } from './names.js';
import { METRICS, type MirrorConfig } from './plugin.js';
import { PrefixMirror, type MirroredList } from './prefix-mirror.js';

/** Starts the mirrors once stored records have been restored, so that they do not read its records again. */
export function start(host: Host, settings: MirrorConfig): Started {
  const { refOf, whenRestored } = host;
  const { mirror } = settings;
  const onUnexpected = createReportUnexpected(host, 'unexpected error in the mirror');
  const mirrors = createPrefixMirrors(settings, host, onUnexpected);
  const findMirror = (key: string): PrefixMirror | undefined => mirrors.get(refOfKey(key).prefix);
  const runAll = async (): Promise<void> => {
    await whenRestored();
    for (const each of mirrors.values()) void each.run();
  };
  runAll().catch(onUnexpected);
  registerMetrics(host, mirrors);
  const rereads = new Map([...mirrors.keys()].map((prefix) => [prefix, createRereads(host, onUnexpected)]));
  return {
    stalePeriod: { prefixes: mirror.prefixes, ms: FOREVER_MS },
    notFoundTtlMs: (key) => findMirror(key)?.unknownTtlMs(key) ?? 0,
    written: (key) => rereads.get(refOfKey(key).prefix)?.add(key),
    invalidated: (key) => findMirror(key)?.markChanged(),
    banned(banned) {
      for (const [prefix, each] of mirrors)
        if (`${prefix}/`.startsWith(banned) || banned.startsWith(`${prefix}/`)) each.markChanged();
    },
    list(prefix, request) {
      const list = prefix.includes('/') ? undefined : findMirror(refOf(`${prefix}/`).key)?.currentList();
      // With a login, the server may hide its lists.
      const found = list && { ...list, isPublic: mirror.user === undefined || mirror.publicLists };
      const page = mirroredPage(request, found);
      return page && list && { ...list, page, detail: 'mirror' };
    },
    statistics: () => ({ mirrors: [...mirrors].map(([prefix, each]) => statisticsOf(prefix, each)) }),
    close() {
      for (const each of rereads.values()) each.clear();
      for (const each of mirrors.values()) each.close();
    },
  };
}

/** Maximum written handles of a prefix that wait for their read; others are read by the next walk. */
const MAX_WRITTEN = 100_000;

/** Reads the written handles of one prefix one at a time: a server that hangs delays those of no other prefix. */
function createRereads({ resolver }: Host, onUnexpected: (error: unknown) => void) {
  const written = new Set<string>();
  const readAll = oneAtATime(async () => {
    for (const key of written) {
      written.delete(key);
      await resolver.refresh(refOfKey(key), 0).catch(exceptServiceError);
    }
  });
  return {
    add(key: string): void {
      if (written.size >= MAX_WRITTEN) return;
      written.add(key);
      readAll().catch(onUnexpected);
    },
    clear: (): void => written.clear(),
  };
}

type PrefixMirrors = ReadonlyMap<string, PrefixMirror>;

function registerMetrics({ metrics }: Host, mirrors: PrefixMirrors): void {
  const readings = (label: string, read: (each: PrefixMirror) => Record<string, number>) =>
    [...mirrors].flatMap(([prefix, each]) =>
      Object.entries(read(each)).map(([name, value]) => ({ labels: { prefix, [label]: name }, value })),
    );
  metrics.readGauge(METRICS.handles, () => readings('state', (each) => each.handleCounts()));
  metrics.readGauge(METRICS.age, () => readings('part', (each) => each.ages()));
}

/** An age is null before the first list, or before the first complete copy. */
function statisticsOf(prefix: string, mirror: PrefixMirror) {
  const { list, records } = mirror.ages();
  const shown = (age: number): number | null => (age === Infinity ? null : Math.round(age));
  return {
    prefix,
    handles: mirror.handleCounts(),
    listAgeSeconds: shown(list),
    recordsAgeSeconds: shown(records),
  };
}

function createPrefixMirrors(
  { mirror, cache: { found } }: MirrorConfig,
  host: Host,
  onUnexpected: (error: unknown) => void,
): PrefixMirrors {
  const { refOf } = host;
  // A name without room for its record is of no use.
  const maxHandles = found.maxEntries;
  const { intervalMs, prefixes } = mirror;
  return new Map(
    prefixes.map((prefix) => {
      const readPage = createReadPage(mirror, refOf(`${prefix}/`), host);
      const readList = (previous: ReadonlySet<string>) =>
        listNames({ prefix, maxHandles, refOf, previous, readPage });
      return [prefix, new PrefixMirror(host, prefix, intervalMs, { readList, onUnexpected })];
    }),
  );
}

function createReadPage(
  { user, password = '' }: MirrorConfig['mirror'],
  handle: HandleRef,
  { upstreams, log }: Host,
): (page: number) => Promise<ListAnswer> {
  const { prefix } = handle;
  const [server] = upstreams.findServers(handle);
  const isSent = user !== undefined && server !== undefined && isSecure(server);
  const authorization = isSent ? basicLogin(user, password) : undefined;
  if (server !== undefined && user !== undefined && !isSent)
    log.warn({ upstream: server.url, remedy: 'use https' }, 'mirror.user is not sent over plain http');
  return async (page) => {
    const { list, source } = assertFound(server);
    // Only Handle servers have pages: others read the whole list each time.
    const paging = source.forwards ? { page, pageSize: PAGE_SIZE } : {};
    return list(prefix, { authorization, caller: OWN_WORK, ...paging });
  };
}

const isSecure = ({ url }: OriginServer): boolean =>
  url.startsWith('https:') || isLoopback(new URL(url).hostname);

/** Maximum handles of a response, and characters of their names: writing more would block the event loop. */
const MAX_HANDLES = 10_000;
const MAX_CHARS = 2 ** 20;
/** Maximum of a Java int, beyond which the server's index of a page overflows. */
const MAX_INT = 2 ** 31 - 1;

/** Parameters that have the same effect here and on a Handle server. */
const UNDERSTOOD: ReadonlySet<string> = new Set(['prefix', 'page', 'pageSize', 'pretty', 'callback']);
const NUMBER = /^\d{1,9}$/;

/** Returns the page to serve; undefined to forward the request. `isPublic`: whether anyone may list. */
export function mirroredPage(
  { method, hasLogin, parameters }: ListRequest,
  list: (MirroredList & { isPublic: boolean }) | undefined,
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
