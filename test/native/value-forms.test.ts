// Conversion of values between JSON and the bytes of a Handle server, compared with handwritten bytes.
import { describe, expect, it } from 'vitest';
import { ByteReader, ByteWriter } from '../../src/handle/bytes.js';
import type { HandleValue } from '../../src/handle/value.js';
import { writeValue } from '../../src/handle/value-data.js';
import { takeValue } from '../../src/cli/native-client.js';

const i4 = (value: number): string => (value >>> 0).toString(16).padStart(8, '0');
const sized = (hex: string): string => i4(hex.length / 2) + hex;
const hexOf = (text: string): string => Buffer.from(text).toString('hex');

function encodeValue(value: HandleValue): Buffer {
  const writer = new ByteWriter();
  writeValue(writer, value);
  return writer.finish();
}

interface Layout {
  index?: string;
  timestamp?: string;
  ttl?: string;
  permissions?: string;
  type?: string;
  /** The data without their length. */
  data?: string;
  references?: string;
}

/** Concatenates the fields in layout order. */
const bytesOf = ({
  index = i4(1),
  timestamp = i4(0),
  ttl = `00${i4(86_400)}`,
  permissions = '0e',
  type = hexOf('URL'),
  data = '78',
  references = i4(0),
}: Layout): string => index + timestamp + ttl + permissions + sized(type) + sized(data) + references;

const text = (value: string) => ({ format: 'string', value });
const base64 = (value: string) => ({ format: 'base64', value });
const WITHOUT_TTL: HandleValue = { index: 1, type: 'URL', data: text('x') };
const PLAIN: HandleValue = { ...WITHOUT_TTL, ttl: 86_400 };

const RSA = { kty: 'RSA', n: 'gAE', e: 'AQAB' };
const RSA_BYTES = `${sized(hexOf('RSA_PUB_KEY'))}0000${sized('010001')}${sized('008001')}00000000`;
const DSA = { kty: 'DSA', y: 'BA', p: '_w', q: 'Ag', g: 'Aw' };
const DSA_BYTES = `${sized(hexOf('DSA_PUB_KEY'))}0000${sized('02')}${sized('00ff')}${sized('03')}${sized('04')}`;

const SITE = {
  version: 1,
  protocolVersion: '2.10',
  serialNumber: 65_535,
  primarySite: true,
  multiPrimary: true,
};
const SITE_HEAD = '0001020affffc0';
const NO_SERVERS = i4(0);

/** Values that convert from JSON to bytes and back without loss. */
const BOTH_WAYS: [what: string, json: Partial<HandleValue>, layout: Layout][] = [
  ['a plain value', {}, {}],
  ['index 0', { index: 0 }, { index: '00000000' }],
  ['a negative index', { index: -1 }, { index: 'ffffffff' }],
  ['the maximum index', { index: 2_147_483_647 }, { index: '7fffffff' }],
  [
    'a timestamp',
    { timestamp: '2026-11-21T10:00:00Z' },
    { timestamp: i4(Date.UTC(2026, 10, 21, 10) / 1000) },
  ],
  ['a timestamp before 1970', { timestamp: '1969-12-31T23:59:59Z' }, { timestamp: 'ffffffff' }],
  ['the last second of 32 bits', { timestamp: '2038-01-19T03:14:07Z' }, { timestamp: '7fffffff' }],
  ['a TTL of 0', { ttl: 0 }, { ttl: '0000000000' }],
  ['a negative TTL', { ttl: -1 }, { ttl: '00ffffffff' }],
  ['an absolute TTL', { ttl: '2030-01-01T00:00:00Z' }, { ttl: `01${i4(Date.UTC(2030, 0) / 1000)}` }],
  ['an absolute TTL of 0', { ttl: '1970-01-01T00:00:00Z' }, { ttl: '0100000000' }],
  ['an absolute TTL before 1970', { ttl: '1901-12-13T20:45:52Z' }, { ttl: '0180000000' }],
  ['no permissions', { permissions: '0000' }, { permissions: '00' }],
  ['all permissions', { permissions: '1111' }, { permissions: '0f' }],
  ['readable only by the public', { permissions: '0010' }, { permissions: '02' }],
  ['readable only by administrators', { permissions: '1000' }, { permissions: '08' }],
  ['empty type and data', { type: '', data: text('') }, { type: '', data: '' }],
  ['a non-ASCII type', { type: 'DÉSC.日本' }, { type: hexOf('DÉSC.日本') }],
  ['text beyond the basic plane', { data: text('𝕳 \u0301\ufeff') }, { data: hexOf('𝕳 \u0301\ufeff') }],
  ['text with a tab and a line break', { data: text('a\tb\r\n') }, { data: '6109620d0a' }],
  ['bytes', { data: base64('AP/+') }, { data: '00fffe' }],
  ['bytes that are not UTF-8', { data: base64('w6Q9ww==') }, { data: 'c3a43dc3' }],
  [
    'references',
    {
      references: [
        { handle: '21.T1/ä', index: 300 },
        { handle: '', index: 0 },
      ],
    },
    { references: i4(2) + sized(hexOf('21.T1/ä')) + i4(300) + sized('') + i4(0) },
  ],
  ['a secret', { type: 'HS_SECKEY', data: text('pass') }, { type: hexOf('HS_SECKEY'), data: hexOf('pass') }],
  [
    'an administrator',
    {
      type: 'HS_ADMIN',
      data: { format: 'admin', value: { handle: '0.NA/21.T1', index: 200, permissions: '011111110011' } },
    },
    { type: hexOf('HS_ADMIN'), data: `07f3${sized(hexOf('0.NA/21.T1'))}${i4(200)}` },
  ],
  [
    'an administrator of an old record',
    {
      type: 'HS_ADMIN',
      data: {
        format: 'admin',
        value: { handle: 'a', index: 0, permissions: '100000000001', legacyByteLength: true },
      },
    },
    { type: hexOf('HS_ADMIN'), data: `0801${sized('61')}${i4(0)}0000` },
  ],
  [
    'a group',
    {
      type: 'HS_VLIST',
      data: { format: 'vlist', value: [{ handle: '21.T1/U', index: 300 }] },
    },
    { type: hexOf('HS_VLIST'), data: i4(1) + sized(hexOf('21.T1/U')) + i4(300) },
  ],
  [
    'an empty group',
    { type: 'HS_VLIST', data: { format: 'vlist', value: [] } },
    { type: hexOf('HS_VLIST'), data: i4(0) },
  ],
  [
    'an RSA key',
    { type: 'HS_PUBKEY', data: { format: 'key', value: RSA } },
    { type: hexOf('HS_PUBKEY'), data: RSA_BYTES },
  ],
  [
    'a DSA key',
    { type: 'HS_PUBKEY', data: { format: 'key', value: DSA } },
    { type: hexOf('HS_PUBKEY'), data: DSA_BYTES },
  ],
  [
    'a key of a different kind',
    { type: 'HS_PUBKEY', data: text('ssh-rsa') },
    { type: hexOf('HS_PUBKEY'), data: hexOf('ssh-rsa') },
  ],
  [
    'a site without servers, by prefix, with a filter',
    {
      type: 'HS_SITE.PREFIX',
      data: {
        format: 'site',
        value: {
          ...SITE,
          hashOption: 0,
          hashFilter: 'x',
          attributes: [{ name: 'desc', value: 'ä' }],
          servers: [],
        },
      },
    },
    {
      type: hexOf('HS_SITE.PREFIX'),
      data: `${SITE_HEAD}00${sized('78')}${i4(1)}${sized(hexOf('desc'))}${sized(hexOf('ä'))}${NO_SERVERS}`,
    },
  ],
  [
    'a site with IPv4 and IPv6, every kind of interface, with and without a key',
    {
      type: 'HS_SITE.6',
      data: {
        format: 'site',
        value: {
          ...SITE,
          attributes: [],
          servers: [
            {
              serverId: 1,
              address: '192.0.2.7',
              publicKey: { format: 'key', value: RSA },
              interfaces: [
                { query: false, admin: false, protocol: 'UDP', port: 2641 },
                { query: false, admin: true, protocol: 'TCP', port: 2641 },
                { query: true, admin: false, protocol: 'HTTP', port: 80 },
                { query: true, admin: true, protocol: 'HTTPS', port: 443 },
              ],
            },
            {
              serverId: 2,
              address: '2001:db8:0:0:0:0:0:1',
              publicKey: { format: 'base64', value: '' },
              interfaces: [],
            },
          ],
        },
      },
    },
    {
      type: hexOf('HS_SITE.6'),
      data:
        `${SITE_HEAD}02${sized('')}${i4(0)}${i4(2)}` +
        `${i4(1)}000000000000000000000000c0000207${sized(RSA_BYTES)}${i4(4)}` +
        `0000${i4(2641)}0101${i4(2641)}0202${i4(80)}0303${i4(443)}` +
        `${i4(2)}20010db8000000000000000000000001${sized('')}${i4(0)}`,
    },
  ],
];

describe('native encoding of values', () => {
  describe.each(BOTH_WAYS)('%s', (_what, json, layout) => {
    const value = { ...PLAIN, ...json };
    const bytes = bytesOf(layout);

    it('is encoded to the expected bytes', () => {
      expect(encodeValue(value).toString('hex')).toBe(bytes);
    });

    it('is decoded from the expected bytes', () => {
      const reader = new ByteReader(Buffer.from(bytes, 'hex'));
      expect(takeValue(reader)).toEqual(value);
      expect(reader.remaining).toBe(0);
    });
  });

  /** JSON forms that a server or a different program may write. */
  it.each<[string, Partial<HandleValue>, Layout]>([
    ['bare text', { data: 'x' }, {}],
    ['hexadecimal digits', { data: { format: 'hex', value: '00Ff' } }, { data: '00ff' }],
    ['text in base64', { data: base64('eA==') }, {}],
    ['a binary format under a different type', { data: { format: 'vlist', value: [] } }, { data: i4(0) }],
    ['five permissions, of which the last four apply', { permissions: '01110' }, {}],
    [
      'a timestamp with milliseconds',
      { timestamp: '2026-11-21T10:00:00.999Z' },
      { timestamp: i4(Date.UTC(2026, 10, 21, 10) / 1000) },
    ],
    [
      'a timestamp in a different time zone',
      { timestamp: '1970-01-01T01:00:01+01:00' },
      { timestamp: i4(1) },
    ],
    ['a timestamp that cannot be read', { timestamp: 'yesterday' }, {}],
    [
      'a timestamp beyond 32 bits, which wraps',
      { timestamp: '2038-01-19T03:14:08Z' },
      { timestamp: '80000000' },
    ],
  ])('produces the expected bytes for %s', (_what, json, layout) => {
    expect(encodeValue({ ...PLAIN, ...json }).toString('hex')).toBe(bytesOf(layout));
  });

  it('uses a TTL of one day for a value without TTL', () => {
    expect(encodeValue(WITHOUT_TTL).toString('hex')).toBe(bytesOf({}));
  });
});
