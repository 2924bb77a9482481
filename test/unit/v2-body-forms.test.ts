import { describe, expect, it } from 'vitest';
import { readOne } from '../support/v2-values.js';

describe('ePIC v2 body formats', () => {
  describe('idx', () => {
    it.each([
      [1, 1],
      ['7', 7],
      [2 ** 31 - 1, 2 ** 31 - 1],
      [-1, undefined],
      ['-1', undefined],
      [null, undefined],
      [undefined, undefined],
    ])('is parsed from %j as %s', (idx, read) => {
      expect(readOne({ idx }).idx).toBe(read);
    });
  });

  describe('content', () => {
    /** Base64 with a line break after 60 characters. */
    const wrapped = `${'QUJD'.repeat(15)}\nQUI=`;

    it.each([
      [{ parsed_data: '' }, ''],
      [{ parsed_data: 5 }, '5'],
      [{ parsed_data: -(2 ** 53) + 1 }, '-9007199254740991'],
      [{ parsed_data: 0.25 }, '0.25'],
      [{ parsed_data: true }, 'true'],
      [{ parsed_data: '2013-11-26T11:58:14Z' }, '2013-11-26T11:58:14Z'],
      [{ data: '' }, ''],
      [{ parsed_data: null }, ''],
      [{ data: null }, ''],
      [{ parsed_data: null, data: null }, ''],
      [{ data: 'AAE=', parsed_data: null }, '\0\u0001'],
      [{ data: 'YQ==', parsed_data: 'a' }, 'a'],
      [{ data: 'YQE=', parsed_data: 'a\u0001' }, 'a\u0001'],
      [{ data: null, parsed_data: 'a' }, 'a'],
    ])('is parsed from %j as %j', (members, text) => {
      expect(readOne(members).data.toString()).toBe(text);
    });

    it.each([
      ['w6Q=', 'ä'],
      ['YWJj', 'abc'],
      ['+/+/', Buffer.from('+/+/', 'base64').toString()],
      [wrapped, `${'ABC'.repeat(15)}AB`],
      [wrapped.replace('\n', '\r\n'), `${'ABC'.repeat(15)}AB`],
      ['QUJD'.repeat(15), 'ABC'.repeat(15)],
    ])('is decoded from canonical base64 data: %j', (data, text) => {
      expect(readOne({ data }).data.toString()).toBe(text);
    });

    it.each([
      ['a URL', 'https://example.org/landing?a=1'],
      ['only letters', 'wwwexample'],
      ['a digit too many', 'YWFhY'],
      ['no padding', 'w6Q'],
      ['short padding', 'YQ='],
      ['long padding', 'YWJj===='],
      ['only padding', '===='],
      ['nonzero unused bits', 'w6R='],
      ['nonzero unused bits before double padding', 'YR=='],
      ['the base64url alphabet', 'a-_b'],
      ['a space', 'YWJj YWJj'],
      ['a short line', 'YWJj\nYWJj'],
      ['a trailing line feed', 'YWJj\n'],
      ['a first line of 64 digits', `${'QUJD'.repeat(16)}\nQUI=`],
      ['a last line of 64 digits', `${'QUJD'.repeat(15)}\n${'QUJD'.repeat(16)}`],
      ['non-ASCII letters', 'Bücher'],
    ])('is text when data is not canonical base64: %s', (_what, data) => {
      expect(readOne({ data }).data.toString()).toBe(data);
      expect(readOne({ data, parsed_data: data }).data.toString()).toBe(data);
    });

    it('may be an administrator in the older encoding, which is preserved', () => {
      const all = Object.fromEntries(
        'add_handle delete_handle add_naming_auth delete_naming_auth modify_value remove_value add_value read_value modify_admin remove_admin add_admin list_handles'
          .split(' ')
          .map((name) => [name, true]),
      );
      const data = Buffer.from('0fff0000000361' + '2f62' + '000000010000', 'hex').toString('base64');
      const parsed_data = { adminId: 'a/b', adminIdIndex: 1, perms: all };
      expect(readOne({ type: 'HS_ADMIN', data, parsed_data }).data.toString('base64')).toBe(data);
    });
  });

  describe('ttl', () => {
    it.each([
      [{}, 86400],
      [{ ttl: null }, 86400],
      [{ ttl_type: 0, ttl: 300 }, 300],
      [{ ttl_type: '0', ttl: '300' }, 300],
      [{ ttl: 300 }, 300],
      [{ ttl: -300 }, 300],
      [{ ttl: '-300' }, 300],
      [{ ttl_type: 0, ttl: -300 }, 300],
      [{ ttl_type: 0, ttl: '-2147483647' }, 2147483647],
      [{ ttl_type: null, ttl: -300 }, 300],
      [{ ttl: 0 }, 0],
      [{ ttl_type: 1, ttl: 0 }, '1970-01-01T00:00:00Z'],
      [{ ttl_type: 1, ttl: 1893456000 }, '2030-01-01T00:00:00Z'],
      [{ ttl_type: '1', ttl: '1893456000' }, '2030-01-01T00:00:00Z'],
      [{ ttl_type: 1, ttl: '2030-01-01T01:00:00.9+01:00' }, '2030-01-01T00:00:00Z'],
      [{ ttl_type: 1, ttl: '2030-01-01' }, '2030-01-01T00:00:00Z'],
      [{ ttl: '2030-01-01T00:00:00Z' }, '2030-01-01T00:00:00Z'],
    ])('is parsed from %j as %j', (members, ttl) => {
      expect(readOne(members).ttl).toBe(ttl);
    });
  });

  describe('references', () => {
    const one = [{ handle: 'a/b:c', index: 1 }];
    it.each([
      [undefined, []],
      [null, []],
      ['', []],
      [[], []],
      [[{ idx: 1, handle: 'a/b:c' }], one],
      [[{ idx: '1', handle: 'a/b:c' }], one],
      [['1:a/b:c'], one],
      [
        ['1:a/b:c', { idx: 2, handle: 'd' }],
        [...one, { handle: 'd', index: 2 }],
      ],
    ])('are parsed from %j as %j', (refs, read) => {
      expect(readOne({ refs }).references).toEqual(read);
    });
  });

  describe('permissions', () => {
    it.each([
      [{}, '1110'],
      [{ privs: 'rw--' }, '1100'],
      [{ privs: '----' }, '0000'],
      [{ pub_read: false }, '1100'],
      [{ admin_read: false, admin_write: false, pub_read: false, pub_write: true }, '0001'],
      [{ privs: 'rwr-', pub_read: false }, '1100'],
    ])('are parsed from %j as %s', (members, permissions) => {
      expect(readOne(members).permissions).toBe(permissions);
    });
  });

  it('ignore timestamps and unknown properties', () => {
    for (const timestamp of ['2013-11-26T11:58:14Z', 'yesterday', 1385467094, null, {}]) {
      expect(readOne({ timestamp, unknown: [1] })).toEqual(readOne({}));
    }
  });
});
