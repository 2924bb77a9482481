// The lock on a handle: spellings of a login count as one client, and a rejected login has one queue place.
import { describe, expect, test } from 'vitest';
import { ServiceError } from '../../src/errors.js';
import { handleRef } from '../../src/handle/handle.js';
import { identityOf } from '../../src/http/identity.js';
import { type HandleLock, createHandleLock } from '../../src/write/lock.js';
import { partial } from '../support/partial.js';

const NETWORK = '192.0.2.0/24';

const HANDLE = handleRef('21.T1/x', false);

const start = (): HandleLock => createHandleLock(60_000);

const as = (name: string) => ({
  identity: identityOf(`Basic ${Buffer.from(`${name}:x`).toString('base64')}`),
  network: NETWORK,
});

/** Returns spellings of one name that differ in percent-encoding and leading zeros. */
const spellings = (count: number): string[] =>
  Array.from(
    { length: count },
    (_, at) => `${'0'.repeat(at % 8)}300%3A21.T1%2F${'%6c'.repeat(at % 4)}${'l'.repeat(3 - (at % 4))}ow`,
  );

describe('lock on a handle', () => {
  test("treats a hundred spellings of a login as one client, so the owner's write is among the first three", async () => {
    const withLock = start();
    const order: string[] = [];
    const write = (name: string, who: string): Promise<unknown> =>
      withLock(HANDLE, as(name), () => Promise.resolve(order.push(who)));
    const others = spellings(100).map((name) => write(name, 'low'));
    await Promise.all([...others, write('300%3A21.T1%2FOWNER', 'owner')]);
    expect(order.indexOf('owner')).toBeLessThanOrEqual(2);
  });

  test('counts a release by this instance, although the clock of Redis was set ahead since', async () => {
    const shared = { freeSince: -Infinity, assertHeld: () => undefined, release: () => Promise.resolve() };
    const withLock = createHandleLock(60_000, () => Promise.resolve(partial(shared)));
    await withLock(HANDLE, as('one'), () => Promise.resolve());
    const released = performance.now();
    await withLock(HANDLE, as('other'), () => Promise.resolve());
    const freeSince = await withLock(HANDLE, as('one'), (held) => Promise.resolve(held.freeSince));
    expect(freeSince).toBeGreaterThanOrEqual(released);
  });

  test.each([
    ['limits a login whose write was rejected to one queue place', 403, 4],
    ['does not limit a login whose write failed otherwise', 404, 0],
  ])('%s', async (_what, status, limited) => {
    const withLock = start();
    const upstreamAnswer = { status, members: {}, namesHandle: false };
    const write = (): Promise<never> =>
      withLock(HANDLE, as('300%3A21.T1%2Flow'), () =>
        Promise.reject(new ServiceError('UPSTREAM_FAILED', { upstreamAnswer })),
      );
    await expect(write()).rejects.toThrow();
    const codes = await Promise.all(
      Array.from({ length: 5 }, () => write().catch((error: unknown) => (error as ServiceError).code)),
    );
    const expected = [...Array<string>(limited).fill('CONCURRENT_MODIFICATION'), 'UPSTREAM_FAILED'];
    expect(codes.sort()).toEqual([...expected, ...Array<string>(4 - limited).fill('UPSTREAM_FAILED')]);
  });
});
