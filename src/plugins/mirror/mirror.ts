// Mirrors the configured prefixes: their handles are all in the cache, and survive an outage of any length.
import { oneAtATime } from '../../cache/clock.js';
import { isLoopback } from '../../config/addresses.js';
import type { Host, Started } from '../../app/plugin.js';
import { FOREVER_MS } from '../../config/fields.js';
import { type HandleRef, refOfKey } from '../../handle/handle.js';
import { exceptServiceError } from '../../resolver/loader.js';
import { OWN_WORK } from '../../upstream/caller.js';
import type { RecordAnswer } from '../../upstream/reply.js';
import type { OriginServer } from '../../upstream/contract.js';
import { assertFound } from '../../upstream/upstreams.js';
import { PAGE_SIZE, listNames } from './names.js';
import { mirroredPage } from './list-decision.js';
import { METRICS, type MirrorConfig } from './plugin.js';
import { PrefixMirror } from './prefix-mirror.js';

/** Maximum written handles that wait for their read; others are read by the next walk. */
const MAX_WRITTEN = 100_000;

/** Starts the mirrors once stored records have been restored, so that they do not read its records again. */
export function start(host: Host, settings: MirrorConfig): Started {
  const { log, metrics, resolver, refOf, whenRestored } = host;
  const { mirror } = settings;
  const mirrors = createPrefixMirrors(settings, host);
  const findMirror = (key: string): PrefixMirror | undefined => mirrors.get(refOfKey(key).prefix);
  const onUnexpected = (err: unknown): void => {
    log.error({ err }, 'unexpected error in the mirror');
    metrics.countInternalError();
  };
  const runAll = async (): Promise<void> => {
    await whenRestored();
    await Promise.all([...mirrors.values()].map((each) => each.run()));
  };
  runAll().catch(onUnexpected);
  registerMetrics(host, mirrors);
  const written = new Set<string>();
  const readWritten = oneAtATime(async () => {
    for (const key of written) {
      written.delete(key);
      await resolver.refresh(refOfKey(key), 0, OWN_WORK).catch(exceptServiceError);
    }
  });
  return {
    stalePeriod: { prefixes: mirror.prefixes, ms: FOREVER_MS },
    notFoundTtlMs: (key) => findMirror(key)?.unknownTtlMs(key) ?? 0,
    written(key) {
      if (written.size >= MAX_WRITTEN || findMirror(key) === undefined) return;
      written.add(key);
      readWritten().catch(onUnexpected);
    },
    invalidated(key) {
      findMirror(key)?.markChanged();
    },
    banned(banned) {
      for (const [prefix, each] of mirrors)
        if (`${prefix}/`.startsWith(banned) || banned.startsWith(`${prefix}/`)) each.markChanged();
    },
    list(prefix, request) {
      const list = prefix.includes('/') ? undefined : findMirror(refOf(`${prefix}/`).key)?.list();
      // With a login, the server may hide its lists.
      const found = list && { ...list, isPublic: mirror.user === undefined || mirror.publicLists };
      const page = mirroredPage(request, found);
      return page && list && { ...list, page, detail: 'mirror' };
    },
    statistics: () => ({ mirrors: [...mirrors].map(([prefix, each]) => statisticsOf(prefix, each)) }),
    close() {
      written.clear();
      for (const each of mirrors.values()) each.close();
    },
  };
}

type PrefixMirrors = ReadonlyMap<string, PrefixMirror>;

function registerMetrics({ metrics }: Host, mirrors: PrefixMirrors): void {
  const readings = (label: string, read: (each: PrefixMirror) => Record<string, number>) => () =>
    [...mirrors].flatMap(([prefix, each]) =>
      Object.entries(read(each)).map(([name, value]) => ({ labels: { prefix, [label]: name }, value })),
    );
  metrics.readGauge(
    METRICS.handles,
    readings('state', (each) => each.handles()),
  );
  metrics.readGauge(
    METRICS.age,
    readings('part', (each) => each.ages()),
  );
}

/** An age is null before the first list, or before the first complete copy. */
function statisticsOf(prefix: string, mirror: PrefixMirror) {
  const { list, records } = mirror.ages();
  const shown = (age: number): number | null => (age === Infinity ? null : Math.round(age));
  return {
    prefix,
    handles: mirror.handles(),
    listAgeSeconds: shown(list),
    recordsAgeSeconds: shown(records),
  };
}

function createPrefixMirrors(
  { mirror: settings, cache: { found } }: MirrorConfig,
  host: Host,
): PrefixMirrors {
  const { cache, refOf, resolver } = host;
  // A name without room for its record is of no use.
  const maxHandles = found.maxEntries;
  const { memory, trustedSince } = cache;
  const { intervalMs, prefixes } = settings;
  return new Map(
    prefixes.map((prefix) => {
      const readPage = createReadPage(settings, refOf(`${prefix}/`), host);
      const list = (previous: ReadonlySet<string>) =>
        listNames({ prefix, maxHandles, refOf, previous, readPage });
      return [prefix, new PrefixMirror({ prefix, intervalMs, list, memory, trustedSince, resolver }, host)];
    }),
  );
}

type MirrorLogin = Pick<MirrorConfig['mirror'], 'user' | 'password'>;

/** Creates the function that reads a page of the list from the server that is responsible for the handle. */
function createReadPage(
  login: MirrorLogin,
  handle: HandleRef,
  { upstreams, log }: Host,
): (page: number) => Promise<RecordAnswer> {
  const { prefix } = handle;
  const [server] = upstreams.findServers(handle);
  const authorization = server && isSecure(server) ? basicLogin(login) : undefined;
  if (server !== undefined && login.user !== undefined && authorization === undefined)
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

/** Returns a login with HTTP Basic. Encodes the colon of an identity, because a colon ends the user (RFC 7617 §2). */
function basicLogin({ user, password }: MirrorLogin): string | undefined {
  if (user === undefined || password === undefined) return undefined;
  const name = user.includes(':') ? encodeURIComponent(user) : user;
  return `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`;
}
