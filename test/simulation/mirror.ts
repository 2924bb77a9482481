// The mirror of the simulated prefix in one instance, and what its lists and its records promise.
import { partial } from '../support/partial.js';
import type { Cache } from '../../src/cache/cache.js';
import type { Hooks } from '../../src/hooks.js';
import type { Host } from '../../src/host.js';
import { handleRef } from '../../src/handle/handle.js';
import type { MirrorConfig } from '../../src/plugins/mirror/plugin.js';
import { start } from '../../src/plugins/mirror/mirror.js';
import type { Resolver } from '../../src/resolver/resolver.js';
import type { Process } from './process.js';
import { type Upstream, PREFIX } from './upstream.js';

export const MIRROR_INTERVAL_MS = 4000;

const SETTINGS = partial<MirrorConfig>({
  mirror: { prefixes: [PREFIX], intervalMs: MIRROR_INTERVAL_MS, publicLists: false },
  cache: { found: { maxEntries: 100 } },
});

interface MirroredParts {
  process: Process;
  upstream: Upstream;
  cache: Cache;
  resolver: Resolver;
  hooks: Hooks;
}

export function startMirror({ process, upstream, cache, resolver, hooks }: MirroredParts): void {
  const nothing = (): void => undefined;
  const server = {
    url: 'https://upstream',
    list: () => upstream.list(process),
    source: { forwards: true } as const,
  };
  const host = partial<Host>({
    ...{ clock: process.clock, cache, resolver, hooks, whenRestored: () => Promise.resolve() },
    refOf: (text: string) => handleRef(text, false),
    metrics: partial({ readGauge: nothing }),
    log: partial({
      info: nothing,
      warn: nothing,
      error({ err }: { err: unknown }) {
        throw err;
      },
    }),
    upstreams: partial({ findServers: () => [partial(server)] }),
  });
  const { list, notFoundTtlMs, written, invalidated, banned } = start(host, SETTINGS);
  hooks.list.push(list!);
  hooks.notFoundTtlMs.push(notFoundTtlMs!);
  hooks.written.push(written!);
  hooks.invalidated.push(invalidated!);
  hooks.banned.push(banned!);
}

/** Returns the list that the instance would serve now; undefined if it forwards the request. */
export function listedBy({ list: [list] }: Hooks): readonly string[] | undefined {
  const parameters = new URLSearchParams({ prefix: PREFIX });
  return list?.(PREFIX, { method: 'GET', hasLogin: false, parameters })?.handles;
}
