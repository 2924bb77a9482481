// The filter rejects private IPv4 networks in any form and special IPv6 addresses in untrusted records.
import { fc } from '../support/property.js';
import { describe, expect, test } from 'vitest';
import { isPrivate } from '../../src/plugins/referrals/referrals.js';

const byte = fc.nat(255);
const privateIPv4 = fc
  .oneof(
    fc.tuple(fc.constant(10), byte, byte, byte),
    fc.tuple(fc.constant(127), byte, byte, byte),
    fc.tuple(fc.constant(192), fc.constant(168), byte, byte),
    fc.tuple(fc.constant(169), fc.constant(254), byte, byte),
    fc.tuple(fc.constant(172), fc.integer({ min: 16, max: 31 }), byte, byte),
    fc.tuple(fc.constant(100), fc.integer({ min: 64, max: 127 }), byte, byte),
  )
  .map((bytes) => bytes as number[]);

const hex = ([a = 0, b = 0, c = 0, d = 0]: number[]): string =>
  `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;

const FORMS: Record<string, (bytes: number[]) => string> = {
  IPv4: (bytes) => bytes.join('.'),
  mapped: (bytes) => `::ffff:${bytes.join('.')}`,
  'mapped, in hex': (bytes) => `::ffff:${hex(bytes)}`,
  compatible: (bytes) => `::${hex(bytes)}`,
  'compatible, with dots': (bytes) => `::${bytes.join('.')}`,
  SIIT: (bytes) => `::ffff:0:${hex(bytes)}`,
  NAT64: (bytes) => `64:ff9b::${hex(bytes)}`,
  'local NAT64': (bytes) => `64:ff9b:1::${hex(bytes)}`,
  '6to4': (bytes) => `2002:${hex(bytes)}::1`,
  Teredo: (bytes) => `2001:0:${hex(bytes)}::1`,
};

describe('referral address filter (SSRF)', () => {
  test.each(Object.entries(FORMS))('rejects a private IPv4 address (form: %s)', (_form, write) => {
    fc.assert(
      fc.property(privateIPv4, (bytes) => {
        expect(isPrivate(write(bytes))).toBe(true);
      }),
    );
  });

  test.each([
    ...[
      '::',
      '::1',
      'fe80::1',
      'fe80::1%eth0',
      'fc00::1',
      'fec0::1',
      'ff02::1',
      '2001:db8::1',
      '100::1',
      '::8.8.8.8',
    ],
    ...['0.0.0.0', '192.88.99.1', '198.18.0.1', '224.0.0.1', '255.255.255.255', '192.0.2.1', '168.63.129.16'],
  ])('rejects %s', (address) => {
    expect(isPrivate(address)).toBe(true);
  });

  test.each(['8.8.8.8', '132.151.20.9', '2600::1', '2a00:1450:4001:801::200e'])('allows %s', (address) => {
    expect(isPrivate(address)).toBe(false);
  });
});
