// Anyone may send names of 2 KB, and logins of 11 KB. What is kept about them is bounded in memory, not only in number.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { PendingInvalidations } from '../../src/cache/coherence/pending-invalidations.js';
import { InvalidationLog } from '../../src/cache/memory/memory-store.js';
import { ExpiringMap } from '../../src/upstream/expiring-map.js';
import { LockQueue } from '../../src/write/lock.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const heapMib = (): number => {
  collectGarbage();
  return process.memoryUsage().heapUsed / 2 ** 20;
};

/** Makes names that are in memory once, as those of requests. */
const nameOf = (chars: number, at: number): string =>
  Buffer.from(`21.T1/${at}`.padEnd(chars, 'X')).toString();

const written = (): ExpiringMap<true> =>
  new ExpiringMap<true>({ ttlMs: 60_000, maxEntries: 100_000, now: () => 0 });

interface Kept {
  chars: number;
  start: () => (name: string) => unknown;
}

test.each<[string, Kept]>([
  [
    'invalidated handles',
    {
      chars: 2000,
      start() {
        const log = new InvalidationLog();
        return (name) => {
          log.add(name);
        };
      },
    },
  ],
  [
    'invalidations that wait for Redis',
    {
      chars: 2000,
      start() {
        const pending = new PendingInvalidations();
        return (key) => {
          pending.add({ kind: 'forget', key });
        };
      },
    },
  ],
  [
    'written handles',
    {
      chars: 2000,
      start() {
        const map = written();
        return (name) => {
          map.set(name, true);
        };
      },
    },
  ],
  [
    'refused logins',
    {
      chars: 11_000,
      start() {
        const queue = new LockQueue(() => 0);
        return (client) => {
          queue.refuse({ client, network: '192.0.2.0/24', prefix: '21.T1' });
        };
      },
    },
  ],
  [
    'released locks',
    {
      chars: 2000,
      start() {
        const queue = new LockQueue(() => 0);
        const writer = { client: '300:21.T1/USER', network: '192.0.2.0/24', prefix: '21.T1' };
        return (name) => {
          queue.enter(name, writer, () => undefined)?.();
        };
      },
    },
  ],
])('%s of long names take at most 40 MiB', (_what, { chars, start }) => {
  const keep = start();
  const before = heapMib();
  for (let at = 0; at < 40_000; at++) keep(nameOf(chars, at));
  expect(heapMib() - before).toBeLessThan(40);
  keep('still in use');
});

test('a name that is set or deleted again counts once', () => {
  const map = written();
  for (let at = 0; at < 200_000; at++) map.set('21.T1/A', true);
  map.set('21.T1/B', true);
  map.delete('21.T1/B');
  expect([map.has('21.T1/A'), map.has('21.T1/B')]).toEqual([true, false]);
  const pending = new PendingInvalidations();
  const taken = new Set<number>();
  for (let at = 0; at < 60_000; at++) {
    pending.add({ kind: 'forget', key: '21.T1/A' });
    pending.add({ kind: 'forget', key: '21.T1/B' });
    taken.add(pending.take(9).length);
  }
  expect([...taken]).toEqual([2]);
});
