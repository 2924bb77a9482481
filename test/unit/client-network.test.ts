// The network of a client: /24 of IPv4, also where it is written as IPv6, and /56 of IPv6.
import { expect, test } from 'vitest';
import { networkOf } from '../../src/server/client-address.js';

test.each([
  ['192.0.2.1', '192.0.2.0/24'],
  ['192.0.2.255', '192.0.2.0/24'],
  ['::ffff:192.0.2.1', '192.0.2.0/24'],
  ['::FFFF:198.51.100.7', '198.51.100.0/24'],
  ['2001:db8:0:12ff::1', '2001:db8:0:1200::/56'],
  ['2001:db8::', '2001:db8:0:0::/56'],
  ['::1', '0:0:0:0::/56'],
])('%s is of %s', (address, network) => {
  expect(networkOf(address)).toBe(network);
});
