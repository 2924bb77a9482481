import { describe, expect, test } from 'vitest';
import { Live } from '../../src/config/live.js';
import { createFindClient, networkOf } from '../../src/http/client-address.js';
import { testContext } from '../support/context.js';

describe('client network', () => {
  test.each([
    ['192.0.2.1', '192.0.2.0/24'],
    ['192.0.2.255', '192.0.2.0/24'],
    ['::ffff:192.0.2.1', '192.0.2.0/24'],
    ['::FFFF:198.51.100.7', '198.51.100.0/24'],
    ['2001:db8:0:12ff::1', '2001:db8:0:1200::/56'],
    ['2001:db8::', '2001:db8:0:0::/56'],
    ['::1', '0:0:0:0::/56'],
  ])('of %s is %s', (address, network) => {
    expect(networkOf(address)).toBe(network);
  });

  /** Returns the client address for these hops and the number of addresses checked. */
  function judged(header: string, isTrusted: (address: string) => boolean): [address: string, count: number] {
    let count = 0;
    const req = { socket: { remoteAddress: '10.0.0.1' }, headers: { 'x-forwarded-for': header } };
    const isChecked = (one: string): boolean => ++count > 0 && isTrusted(one);
    const findClient = createFindClient(isChecked, testContext(), new Live({}));
    return [findClient(req as never).address, count];
  }

  test('is determined by checking no hop for an untrusted client, and at most 100 for a trusted client', () => {
    const hops = '10.0.0.2, '.repeat(3000);
    expect(judged(hops, () => false)).toEqual(['10.0.0.1', 1]);
    expect(judged(`${hops}192.0.2.1`, (address) => address.startsWith('10.'))).toEqual(['192.0.2.1', 2]);
    expect(judged(`192.0.2.1, ${hops}10.0.0.3`, (address) => address.startsWith('10.'))).toEqual([
      '10.0.0.2',
      101,
    ]);
  });
});
