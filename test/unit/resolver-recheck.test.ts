// Many callers share a recheck.
import { describe, expect, test } from 'vitest';
import { ServiceError } from '../../src/errors.js';
import { toBytes } from '../../src/handle/bytes.js';
import { handleRef } from '../../src/handle/handle.js';
import { gate } from '../support/gate.js';
import { createLoneResolver } from '../support/lone-resolver.js';
import { NOW, entryOf } from '../support/store-contract.js';

const HANDLE = handleRef('21.T1/RECHECKED', false);
const now = (): number => NOW;

/** Starts a resolver whose server captures its text when a read arrives and responds after `open`. */
function start() {
  const server = { text: '["old"]', reads: 0, failures: 0, ...gate() };
  const { resolver, memory } = createLoneResolver({
    now,
    async load() {
      server.reads++;
      const values = toBytes(server.text);
      await server.opened;
      if (server.failures-- > 0) throw new ServiceError('UPSTREAM_TIMEOUT');
      return { kind: 'found', values, ttls: [60] };
    },
  });
  const { key } = HANDLE;
  memory.set(key, entryOf('known'), memory.get(key).ticket);
  return { server, resolver, kept: () => memory.peek(key)?.values };
}

describe('recheck after a failed If-Match', () => {
  test('requires two reads for fifty concurrent callers, none of whom joins an earlier read', async () => {
    const { server, resolver, kept } = start();
    const first = resolver.recheck(HANDLE, undefined);
    await expect.poll(() => server.reads).toBe(1);
    server.text = '["new"]';
    const others = Array.from({ length: 49 }, () => resolver.recheck(HANDLE, undefined));
    server.open();
    await Promise.all([first, ...others]);
    expect([server.reads, kept()]).toEqual([2, '["new"]']);
  });

  test('requires one more read for each later caller', async () => {
    const { server, resolver } = start();
    server.open();
    for (let times = 0; times < 3; times++) await resolver.recheck(HANDLE, undefined);
    expect(server.reads).toBe(3);
  });

  test('reads again for a caller that waited for a failed read', async () => {
    const { server, resolver, kept } = start();
    server.failures = 1;
    const first = resolver.recheck(HANDLE, undefined);
    await expect.poll(() => server.reads).toBe(1);
    const second = resolver.recheck(HANDLE, undefined);
    server.open();
    await Promise.all([first, second]);
    expect([server.reads, kept()]).toEqual([2, '["old"]']);
  });
});
