import { describe, expect, onTestFinished, test } from 'vitest';
import { ServiceError } from '../../src/errors.js';
import type { Change } from '../../src/cache/coherence/message.js';
import { toBytes } from '../../src/handle/bytes.js';
import { handleRef } from '../../src/handle/handle.js';
import type { Resolver } from '../../src/resolver/resolver.js';
import { settled } from '../support/manual-clock.js';
import { createLoneResolver } from '../support/lone-resolver.js';
import { NOW, entryOf } from '../support/store-contract.js';

const HANDLE = handleRef('21.T1/unkept', false);
const now = (): number => NOW;

/** Starts a resolver with a stale record whose new version cannot be stored. */
function start(published: Change[] = []): Resolver {
  const { resolver, memory } = createLoneResolver({
    now,
    load: () => Promise.resolve({ kind: 'found', values: toBytes('[]'), ttls: [0] }),
    publish(change) {
      published.push(change);
      return Promise.reject(new ServiceError('INVALIDATION_UNCONFIRMED'));
    },
  });
  const { key } = HANDLE;
  memory.set(key, entryOf('old', { staleAt: NOW - 1 }), memory.get(key).ticket);
  return resolver;
}

describe('read with an unconfirmed invalidation (redis.disconnectedWrites: reject)', () => {
  test('succeeds for an ordinary caller, and causes no unhandled rejection', async () => {
    const uncaught: unknown[] = [];
    const note = (error: unknown): number => uncaught.push(error);
    process.on('unhandledRejection', note);
    onTestFinished(() => void process.off('unhandledRejection', note));
    expect(await start().resolve(HANDLE, { authoritative: false })).toMatchObject({ from: 'upstream' });
    await settled();
    expect(uncaught).toEqual([]);
  });

  test('fails with INVALIDATION_UNCONFIRMED for a caller that requires an authoritative response', async () => {
    await expect(start().resolve(HANDLE, { authoritative: true })).rejects.toMatchObject({
      code: 'INVALIDATION_UNCONFIRMED',
    });
  });
});

test('an unconfirmed purge of a prefix reaches the handles and the records of the prefix', async () => {
  const published: Change[] = [];
  const purge = start(published).purge({ prefix: '21.T1' }, { isSoft: false });
  await expect(purge).rejects.toMatchObject({ code: 'INVALIDATION_UNCONFIRMED' });
  expect(published).toMatchObject([{ prefix: '21.T1' }, { prefix: '0.NA/21.T1' }]);
});
