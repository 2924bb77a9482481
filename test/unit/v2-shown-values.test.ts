import { describe, expect, it } from 'vitest';
import { valueFromJson, valueToJson } from '../../src/dev-server/value.js';
import type { HandleValue } from '../../src/handle/value.js';
import { textValue, toV2 } from '../support/v2-values.js';

const one = (members: Partial<HandleValue>) => toV2([{ ...textValue(1, 'X'), ...members }])[0]!;

describe('ePIC v2 response values', () => {
  it('are sorted by index', () => {
    const values = [100, 30, 2, 7].map((index) => textValue(index, 'X'));
    expect(toV2(values).map(({ idx }) => idx)).toEqual([2, 7, 30, 100]);
  });

  it('exclude secret keys in any case of the type', () => {
    const types = ['HS_SECKEY', 'hs_seckey', 'HS_SECKEY.OLD', 'HS_SECKEYS', 'MY_HS_SECKEY'];
    const values = types.map((type, at) => textValue(at + 1, type));
    expect(toV2(values).map(({ type }) => type)).toEqual(['HS_SECKEYS', 'MY_HS_SECKEY']);
  });

  describe('text', () => {
    it.each([
      ['a b', 'a b'],
      ['a\tb\r\nc', 'a\tb\r\nc'],
      ['\ufeffä漢😀\u2028\u0085', '\ufeffä漢😀\u2028\u0085'],
      ['', ''],
      ['\0', null],
      ['a\u000b', null],
      ['a\u007f', null],
    ])('is converted from %j to parsed_data %j', (value, parsed) => {
      const shown = one({ data: { format: 'string', value } });
      expect(shown.parsed_data).toBe(parsed);
      expect(Buffer.from(shown.data, 'base64').toString()).toBe(value);
    });

    it('is converted from hex to the same bytes', () => {
      expect(one({ data: { format: 'hex', value: 'c3a4' } })).toMatchObject({
        parsed_data: 'ä',
        data: 'w6Q=',
      });
    });

    it('has no parsed_data when it is invalid UTF-8', () => {
      expect(one({ data: { format: 'base64', value: 'w/8=' } })).toMatchObject({
        parsed_data: null,
        data: 'w/8=',
      });
    });
  });

  const site = {
    version: 1,
    protocolVersion: '2.11',
    serialNumber: 7,
    primarySite: true,
    multiPrimary: false,
    hashOption: 1,
    hashFilter: 'abc',
    attributes: [{ name: 'desc', value: 'ä' }],
    servers: [
      {
        serverId: 1,
        address: '192.0.2.1',
        publicKey: { format: 'base64', value: 'AAEC' },
        interfaces: [{ query: true, admin: false, protocol: 'TCP', port: 2641 }],
      },
    ],
  };

  describe('data in other formats', () => {
    it.each<[string, unknown]>([
      ['HS_ADMIN', { format: 'admin', value: { handle: 'a/b', index: 3, permissions: '111111111111' } }],
      [
        'HS_ADMIN',
        {
          format: 'admin',
          value: { handle: 'a/b', index: 3, permissions: '000000000001', legacyByteLength: true },
        },
      ],
      ['HS_VLIST', { format: 'vlist', value: [{ handle: 'ä/b', index: 300 }] }],
      ['HS_SITE', { format: 'site', value: site }],
      ['HS_PUBKEY', { format: 'key', value: { kty: 'DSA', y: '_w', p: 'Aw', q: 'BQ', g: 'Bw' } }],
      ['HS_PUBKEY', { format: 'key', value: { kty: 'RSA', n: '_w', e: 'AQAB' } }],
    ])('are encoded as bytes: %s %j', (type, data) => {
      const bytes = one({ type, data }).data;
      const again = valueToJson(
        valueFromJson({ index: 1, type, data: { format: 'base64', value: bytes } }, 0),
      );
      expect(again.data).toEqual(data);
    });

    it('leave the rest of the record readable when invalid', () => {
      const broken = [{ format: 'site', value: {} }, { format: 'new', value: 1 }, null, 7].map(
        (data, at) => ({
          ...textValue(at + 1, 'HS_SITE'),
          data,
        }),
      );
      const shown = toV2([...broken, textValue(9, 'URL', 'u')]);
      expect(shown.map(({ data }) => data)).toEqual(['', '', '', '', 'dQ==']);
    });

    it('include the parsed data of an HS_VLIST', () => {
      const data = { format: 'vlist', value: [{ handle: 'a/b', index: 300 }] };
      expect(one({ type: 'HS_VLIST', data }).parsed_data).toEqual([{ idx: 300, handle: 'a/b' }]);
    });

    it('have no parsed_data for an invalid HS_ADMIN', () => {
      expect(one({ type: 'HS_ADMIN' })).toMatchObject({ parsed_data: null, data: 'eA==' });
    });
  });

  it('have defaults for omitted members', () => {
    expect(toV2([{ index: 1, type: 'X', data: 'x' }])).toEqual([
      { idx: 1, type: 'X', parsed_data: 'x', data: 'eA==', ttl_type: 0, ttl: 86400, refs: [], privs: 'rwr-' },
    ]);
  });

  it.each([
    ['1100', 'rw--'],
    ['0000', '----'],
    ['1111', 'rwrw'],
    ['00110', '-wr-'],
  ])('convert permissions %s to %s', (permissions, privs) => {
    expect(one({ permissions }).privs).toBe(privs);
  });

  it('include an absolute ttl and references', () => {
    const shown = one({ ttl: '2030-01-02T03:04:05Z', references: [{ handle: 'a/b', index: 1 }] });
    expect(shown).toMatchObject({ ttl_type: 1, ttl: '2030-01-02T03:04:05Z', refs: ['1:a/b'] });
  });

  it('omit invalid references', () => {
    const broken = [null, 7, 'x', {}, { handle: 'a/b' }, { index: 1 }, { handle: 7, index: 1 }];
    const references = [...broken, { handle: 'a/b', index: 1 }] as HandleValue['references'];
    expect(one({ ...(references && { references }) }).refs).toEqual(['1:a/b']);
  });
});
