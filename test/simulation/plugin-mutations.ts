// Mutations of the change feed and of the mirror, and of what a stale response may be.
import { MemoryStore } from '../../src/cache/memory/memory-store.js';
import { DeliveryQueue } from '../../src/plugins/changes/webhook.js';
import { PrefixMirror } from '../../src/plugins/mirror/prefix-mirror.js';
import { Resolver } from '../../src/resolver/resolver.js';
import { UPSTREAM_FAULTS } from './fault-driver.js';
import { FRONT_SETTINGS } from './front-cache.js';
import type { Mutation } from './mutations.js';
import { replace, withScripts } from './mutation-tools.js';
import { WITH_FRONT } from './run.js';

const WITH_PLUGINS = { world: { hasPlugins: true } } satisfies Partial<Mutation>;

/** Changes a setting of the cache in front. */
const withFront = (changed: Partial<typeof FRONT_SETTINGS>): Mutation => ({
  seed: 1,
  apply() {
    const { ...before } = FRONT_SETTINGS;
    Object.assign(FRONT_SETTINGS, changed);
    return () => {
      Object.assign(FRONT_SETTINGS, before);
    };
  },
  ...WITH_FRONT,
});

export const PLUGIN_MUTATIONS: Record<string, Mutation> = {
  'a new epoch of the change log begins without a gap': {
    seed: 1,
    apply: withScripts((source, args) => [source.replace('add(ARGV[4])', ''), args]),
    ...WITH_PLUGINS,
  },
  'the change log does not compare the eras': {
    seed: 1,
    apply: withScripts((source, args) => [
      source.replace("(ARGV[3] ~= '' and ARGV[3] ~= era)", 'false'),
      args,
    ]),
    faults: ['failover and back to the old master'],
    ...WITH_PLUGINS,
  },
  'a change that Redis does not take immediately is dropped': {
    seed: 1,
    apply: () =>
      replace(
        DeliveryQueue,
        'add',
        (original) =>
          function add(this: DeliveryQueue, lines) {
            return this.length > 0 ? Promise.resolve() : original.call(this, lines);
          },
      ),
    ...WITH_PLUGINS,
  },
  'a mirrored list stays current after a change': {
    seed: 1,
    apply: () => replace(PrefixMirror, 'markChanged', () => () => undefined),
    ...WITH_PLUGINS,
  },
  'a mirrored list is current without a lease': {
    seed: 6,
    apply: () =>
      replace(
        PrefixMirror,
        'currentList',
        (original) =>
          function currentList(this: PrefixMirror) {
            const { cache } = (this as unknown as { host: { cache: { trustedSince: () => number } } }).host;
            const { trustedSince } = cache;
            cache.trustedSince = () => 0;
            const list = original.call(this);
            cache.trustedSince = trustedSince;
            return list;
          },
      ),
    ...WITH_PLUGINS,
  },
  'a mirror reads no fresh record again': {
    seed: 1,
    apply: () =>
      replace(
        Resolver,
        'refresh',
        (original) =>
          function refresh(this: Resolver, handle) {
            return original.call(this, handle, 0);
          },
      ),
    ...WITH_PLUGINS,
  },
  'a cache in front is told of a write while older responses are on their way to it': {
    ...withFront({ settleMs: 1 }),
    seed: 5,
  },
  'a write is acknowledged although a cache in front has not confirmed it': withFront({
    unconfirmedWrites: 'accept',
  }),
  'a write makes the older record stale instead of deleting it': {
    seed: 1,
    apply: () =>
      replace(
        MemoryStore,
        'applyChange',
        (original) =>
          function applyChange(this: MemoryStore, change) {
            original.call(this, change.kind === 'changed' ? { ...change, kind: 'unchanged' } : change);
            if (change.kind === 'changed') original.call(this, { kind: 'soften', key: change.key });
          },
      ),
    faults: UPSTREAM_FAULTS,
  },
};
