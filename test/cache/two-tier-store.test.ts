// What Redis gives while it is being told to forget does not come back to memory.
import { expect, test } from 'vitest';
import type { Entry } from '../../src/cache/entry.js';
import { MemoryStore } from '../../src/cache/memory-store.js';
import type { RedisStore } from '../../src/cache/redis-store.js';
import { TwoTierStore } from '../../src/cache/two-tier-store.js';
import { NOW, entryOf } from '../support/store-contract.js';

const bounds = { maxBytes: 10_000_000, found: { maxEntries: 1000 }, notFound: { maxEntries: 1000 } };
const KEY = '21.T1/A';

/** A Redis that holds an entry until it has obeyed, and obeys when it is let. */
function slowRedis(left: Entry | undefined) {
  let entry: Entry | undefined = entryOf('old');
  let obey = (): void => undefined;
  const obeyed = new Promise<void>((resolve) => {
    obey = () => {
      entry = left;
      resolve();
    };
  });
  const redis = {
    get: () => Promise.resolve({ entry, ticket: undefined }),
    forget: () => obeyed,
    soften: () => obeyed,
    sweep: () => obeyed.then(() => 7),
  };
  return { redis: redis as unknown as RedisStore, obey };
}

const stale = entryOf('old', { staleAt: NOW });

test.each<[what: string, left: Entry | undefined, purge: (tiers: TwoTierStore) => Promise<void>]>([
  ['a forgetting', undefined, (tiers) => tiers.forget(KEY)],
  ['a sweep', undefined, (tiers) => tiers.sweep({ prefix: '21.T1/', isSoft: false })],
  ['a softening', stale, (tiers) => tiers.soften(KEY)],
  ['a soft sweep', stale, (tiers) => tiers.sweep({ prefix: '21.T1/', isSoft: true })],
])('after %s nothing fresh is left', async (_what, left, purge) => {
  const memory = new MemoryStore({ bounds, fenceLifeMs: 1000, now: () => NOW });
  const { redis, obey } = slowRedis(left);
  const tiers = new TwoTierStore(memory, redis);
  const purged = purge(tiers);
  // A reader comes in between, and the entry of Redis is copied into memory.
  expect((await tiers.get(KEY)).entry).toEqual(entryOf('old'));
  expect(memory.peek(KEY)).toEqual(entryOf('old'));
  obey();
  await purged;
  expect((await tiers.get(KEY)).entry).toEqual(left);
});
