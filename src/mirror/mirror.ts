// Mirrors the configured prefixes: their handles are all in the cache, and survive an outage of any length.
import type { Cache } from '../cache/cache.js';
import { oneAtATime } from '../cache/clock.js';
import { isLoopback } from '../config/addresses.js';
import type { Config } from '../config/schema.js';
import type { Context } from '../context.js';
import { type HandleRef, refOfKey } from '../handle/handle.js';
import { exceptServiceError } from '../resolver/loader.js';
import type { Resolver } from '../resolver/resolver.js';
import { OWN_WORK } from '../upstream/caller.js';
import type { RecordAnswer } from '../upstream/reply.js';
import { type HandleServer, type Upstreams, assertFound } from '../upstream/upstreams.js';
import { PAGE_SIZE, listNames } from './names.js';
import { type MirroredList, PrefixMirror } from './prefix-mirror.js';

interface MirrorParts {
  cache: Pick<Cache, 'trustedSince'> & { memory: Pick<Cache['memory'], 'inspect'> };
  upstreams: Pick<Upstreams, 'findServers'>;
  refOf: (text: string) => HandleRef;
  /** A function, because the resolver is created after the mirror, which it asks for TTLs. */
  resolver: () => Pick<Resolver<unknown>, 'refresh'>;
  /** The mirrors start afterwards, so that they do not read restored records again. */
  whenRestored: () => Promise<void>;
}

export interface Mirror {
  /** Returns the minimum TTL of a not-found answer (ms). */
  unknownTtlMs: (key: string) => number;
  /** Called when a write by any instance has invalidated a record of this instance. */
  onWritten: (key: string) => void;
  /** Called when a record of this instance has been invalidated. */
  onInvalidated: (key: string) => void;
  /** Called when all records whose keys start with a prefix have been invalidated. */
  onBanned: (prefix: string) => void;
  /** Finds the list of a prefix for clients; `isPublic` is whether it is for anyone. */
  findList: (prefix: string) => (MirroredList & { isPublic: boolean }) | undefined;
  close: () => void;
}

/** Maximum written handles that wait for their read; others are read by the next walk. */
const MAX_WRITTEN = 100_000;

/** Starts the mirrors once the snapshot has been restored. */
export function createMirror(
  { mirror }: Pick<Config, 'mirror'>,
  context: Context,
  parts: MirrorParts,
): Mirror {
  const { refOf, resolver, whenRestored } = parts;
  const mirrors = createPrefixMirrors(mirror, context, parts);
  const readings = (label: string, read: (each: PrefixMirror) => Record<string, number>) => () =>
    [...mirrors].flatMap(([prefix, each]) =>
      Object.entries(read(each)).map(([name, value]) => ({ labels: { prefix, [label]: name }, value })),
    );
  context.metrics.registerMirrorHandles(readings('state', (each) => each.handles()));
  context.metrics.registerMirrorAges(readings('part', (each) => each.ages()));
  const start = async (): Promise<void> => {
    await whenRestored();
    await Promise.all([...mirrors.values()].map((each) => each.run()));
  };
  const onUnexpected = (err: unknown): void => {
    context.log.error({ err }, 'unexpected error in the mirror');
    context.metrics.countInternalError();
  };
  start().catch(onUnexpected);
  const written = new Set<string>();
  const readWritten = oneAtATime(async () => {
    for (const key of written) {
      written.delete(key);
      await resolver().refresh(refOfKey(key), { newerThan: 0, caller: OWN_WORK }).catch(exceptServiceError);
    }
  });
  return {
    unknownTtlMs: (key) =>
      mirrors.size === 0 ? 0 : (mirrors.get(refOfKey(key).prefix)?.unknownTtlMs(key) ?? 0),
    onWritten(key) {
      if (mirrors.size === 0 || written.size >= MAX_WRITTEN || !mirrors.has(refOfKey(key).prefix)) return;
      written.add(key);
      readWritten().catch(onUnexpected);
    },
    onInvalidated(key) {
      if (mirrors.size > 0) mirrors.get(refOfKey(key).prefix)?.markChanged();
    },
    onBanned(banned) {
      for (const [prefix, each] of mirrors)
        if (`${prefix}/`.startsWith(banned) || banned.startsWith(`${prefix}/`)) each.markChanged();
    },
    findList(given) {
      const list = given.includes('/') ? undefined : mirrors.get(refOf(`${given}/`).prefix)?.list();
      // With a login, the server may hide its lists.
      return list && { ...list, isPublic: mirror.user === undefined || mirror.publicLists };
    },
    close() {
      written.clear();
      for (const each of mirrors.values()) each.close();
    },
  };
}

function createPrefixMirrors(
  settings: Config['mirror'],
  context: Context,
  { cache: { memory, trustedSince }, upstreams, refOf, resolver }: MirrorParts,
): ReadonlyMap<string, PrefixMirror> {
  const { intervalMs, maxHandles, prefixes } = settings;
  return new Map(
    prefixes.map((prefix) => {
      const readPage = createReadPage(settings, refOf(`${prefix}/`), { upstreams, context });
      const list = (previous: ReadonlySet<string>) =>
        listNames({ prefix, maxHandles, refOf, previous, readPage });
      return [
        prefix,
        new PrefixMirror({ prefix, intervalMs, list, memory, trustedSince, resolver }, context),
      ];
    }),
  );
}

type MirrorLogin = Pick<Config['mirror'], 'user' | 'password'>;

/** Creates the function that reads a page of the list from the server that is responsible for the handle. */
function createReadPage(
  login: MirrorLogin,
  handle: HandleRef,
  { upstreams, context }: { upstreams: MirrorParts['upstreams']; context: Context },
): (page: number) => Promise<RecordAnswer> {
  const { prefix } = handle;
  const [server] = upstreams.findServers(handle);
  const authorization = server && isSecure(server) ? basicLogin(login) : undefined;
  if (server !== undefined && login.user !== undefined && authorization === undefined)
    context.log.warn(
      { upstream: server.url, remedy: 'use https' },
      'mirror.user is not sent over plain http',
    );
  return async (page) => {
    const { records, list, isRepository } = assertFound(server);
    // A repository has no pages.
    if (isRepository) return list(prefix, { caller: OWN_WORK });
    return records.list(prefix, { authorization, caller: OWN_WORK, page, pageSize: PAGE_SIZE });
  };
}

const isSecure = ({ url }: HandleServer): boolean =>
  url.startsWith('https:') || isLoopback(new URL(url).hostname);

/** Returns a login with HTTP Basic. Encodes the colon of an identity, because a colon ends the user (RFC 7617 §2). */
function basicLogin({ user, password }: MirrorLogin): string | undefined {
  if (user === undefined || password === undefined) return undefined;
  const name = user.includes(':') ? encodeURIComponent(user) : user;
  return `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`;
}
