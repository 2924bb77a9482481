// Validation of a v2 body: accepted forms, and errors that name the property.
import { describe, expect, it } from 'vitest';
import { ServiceError } from '../../src/errors.js';
import { readInputs } from '../../src/v2/translation/schema.js';
import { cpuMs } from '../support/cpu-time.js';
import { readOne } from '../support/v2-values.js';

const refusal = (body: unknown): string => {
  try {
    readInputs(body);
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'V2_BAD_BODY') return error.message;
    throw error;
  }
  throw new Error('the body was accepted');
};

const url = { type: 'URL', parsed_data: 'x' };
const noPerms = { type: 'HS_ADMIN', parsed_data: { adminId: 'a/b', adminIdIndex: 1, perms: {} } };

describe('a body is rejected, naming the value and the property, when', () => {
  it.each<[string, unknown, string]>([
    ['it is an object', { values: [] }, 'give an array of values'],
    ['it is null', null, 'give an array of values'],
    ['it is a text', 'x', 'give an array of values'],
    ['it has too many values', Array.from({ length: 2049 }, () => url), 'give at most 2048 values'],
    ['a value is a text', [url, 'x'], '[1]: give an object'],
    ['a value is null', [null], '[0]: give an object'],
    ['a value is an array', [[]], '[0]: give an object'],
    ['the type is missing', [{ parsed_data: 'x' }], '[0].type: give a text'],
    ['the type is a number', [{ ...url, type: 7 }], '[0].type: give a text'],
    ['idx is nonsense', [{ ...url, idx: 'one' }], '[0].idx: give a whole number from 1 to 2147483647'],
    ['idx is a fraction', [{ ...url, idx: 1.5 }], '[0].idx: give a whole number'],
    ['idx is 0', [{ ...url, idx: 0 }], '[0].idx: give a whole number'],
    ['idx is -2', [{ ...url, idx: -2 }], '[0].idx: give a whole number'],
    ['idx is over 31 bits', [{ ...url, idx: 2 ** 31 }], '[0].idx: give a whole number'],
    [
      'idx repeats',
      [url, { ...url, idx: 2 }, { ...url, idx: '2' }],
      '[2].idx: give another index, [1] has 2',
    ],
    ['it is an empty list', [], 'give at least one value'],
    ['a value has no content', [{ type: 'URL' }], '[0].parsed_data: give it, or data'],
    ['the content is null', [{ type: 'URL', parsed_data: null }], '[0].parsed_data: give it, or data'],
    ['both are null', [{ type: 'URL', parsed_data: null, data: null }], '[0].parsed_data: give it, or data'],
    ['HS_VLIST has nothing', [{ type: 'HS_VLIST' }], '[0].parsed_data: give it, or data'],
    ['data is a number', [{ type: 'URL', data: 5 }], '[0].data: give a text'],
    ['data is half a character', [{ type: 'URL', data: '\ud800' }], '[0].data: give whole Unicode'],
    ['HS_ADMIN has a text as data', [{ type: 'HS_ADMIN', data: 'w6Q' }], '[0].data: give base64'],
    ['HS_VLIST has a text as data', [{ type: 'HS_VLIST', data: '1:a/b' }], '[0].data: give base64'],
    [
      'data is another text',
      [{ type: 'URL', data: 'http://x/', parsed_data: 'http://y/' }],
      '[0].parsed_data: data says',
    ],
    ['the two data disagree', [{ ...url, data: 'YQ==' }], '[0].parsed_data: data says something else'],
    ['an ordinary type has an object', [{ type: 'URL', parsed_data: {} }], '[0].parsed_data: give a text'],
    ['an ordinary type has an array', [{ type: 'URL', parsed_data: ['x'] }], '[0].parsed_data: give a text'],
    ['a character is half', [{ ...url, parsed_data: '\ud800' }], '[0].parsed_data: give whole Unicode'],
    ['HS_ADMIN has a text', [{ type: 'HS_ADMIN', parsed_data: 'x' }], '[0].parsed_data: give an object'],
    ['HS_ADMIN has nothing', [{ type: 'HS_ADMIN' }], '[0].parsed_data: give it, or data'],
    ['HS_ADMIN lacks a key', [{ ...noPerms, parsed_data: {} }], '[0].parsed_data: adminId: give a text'],
    ['HS_ADMIN lacks a permission', [noPerms], '[0].parsed_data: perms.add_handle: give true or false'],
    ['HS_VLIST has a text', [{ type: 'HS_VLIST', parsed_data: 'x' }], '[0].parsed_data: give an array'],
    [
      'HS_VLIST lacks idx',
      [{ type: 'HS_VLIST', parsed_data: [{ handle: 'a' }] }],
      '[0].parsed_data: [0].idx:',
    ],
    ['ttl is a word', [{ ...url, ttl: 'soon' }], '[0].ttl: give whole seconds'],
    ['ttl is a fraction', [{ ...url, ttl: 1.5 }], '[0].ttl: give whole seconds'],
    ['ttl is over 32 bits', [{ ...url, ttl: 2 ** 31 }], '[0].ttl: give whole seconds'],
    ['ttl has no amount', [{ ...url, ttl: -(2 ** 31) }], '[0].ttl: give whole seconds'],
    ['ttl has no amount', [{ ...url, ttl_type: 0, ttl: '-2147483648' }], '[0].ttl: give whole seconds'],
    ['a time is before 1970', [{ ...url, ttl_type: 1, ttl: -1 }], '[0].ttl: with ttl_type 1'],
    ['a date is before 1970', [{ ...url, ttl: '1969-12-31T23:59:59Z' }], '[0].ttl: with ttl_type 1'],
    ['ttl is an object', [{ ...url, ttl: {} }], '[0].ttl: give seconds or a date'],
    ['a date is relative', [{ ...url, ttl_type: 0, ttl: '2030-01-01T00:00:00Z' }], '[0].ttl: give whole'],
    ['a date is missing', [{ ...url, ttl_type: 1 }], '[0].ttl: with ttl_type 1 give a date'],
    ['a date is none', [{ ...url, ttl_type: 1, ttl: '2030-02-30T00:00:00Z' }], '[0].ttl: with ttl_type 1'],
    [
      'a date is too late',
      [{ ...url, ttl_type: 1, ttl: '2039-01-01T00:00:00Z' }],
      '[0].ttl: with ttl_type 1',
    ],
    ['a date has no zone', [{ ...url, ttl_type: 1, ttl: '2030-01-01T00:00:00' }], '[0].ttl: with ttl_type 1'],
    ['ttl_type is unknown', [{ ...url, ttl_type: 2 }], '[0].ttl_type: give a whole number from 0 to 1'],
    ['refs is an object', [{ ...url, refs: {} }], '[0].refs: give an array'],
    ['refs is a text', [{ ...url, refs: '1:a/b' }], '[0].refs: give an array'],
    ['a ref has no index', [{ ...url, refs: ['1:a/b', 'a/b'] }], '[0].refs[1]: give {"idx": 1'],
    ['a ref has no handle', [{ ...url, refs: [{ idx: 1 }] }], '[0].refs[0]: give {"idx": 1'],
    ['refs are too many', [{ ...url, refs: Array(2049).fill(7) }], '[0].refs: give at most 2048'],
    [
      'HS_VLIST is too long',
      [{ type: 'HS_VLIST', parsed_data: Array(2049).fill(7) }],
      '[0].parsed_data: give at most 2048',
    ],
    ['privs is short', [{ ...url, privs: 'rw' }], '[0].privs: give four characters such as rwr-'],
    ['privs is mixed up', [{ ...url, privs: 'wrwr' }], '[0].privs: give four characters'],
    ['a permission is a number', [{ ...url, pub_read: 1 }], '[0].pub_read: give true or false'],
  ])('%s', (_reason, body, message) => {
    expect(refusal(body)).toContain(`Invalid list of values (ePIC v2): ${message}`);
  });
});

describe('idx', () => {
  it.each([
    [1, 1],
    ['7', 7],
    [2 ** 31 - 1, 2 ** 31 - 1],
    [-1, undefined],
    ['-1', undefined],
    [null, undefined],
    [undefined, undefined],
  ])('%j is %s', (idx, read) => {
    expect(readOne({ idx }).idx).toBe(read);
  });
});

describe('the content', () => {
  /** A line of 60 characters, and four more. */
  const wrapped = `${'QUJD'.repeat(15)}\nQUI=`;

  it.each([
    [{ parsed_data: '' }, ''],
    [{ parsed_data: 5 }, '5'],
    [{ parsed_data: true }, 'true'],
    [{ parsed_data: '2013-11-26T11:58:14Z' }, '2013-11-26T11:58:14Z'],
    [{ data: '' }, ''],
    [{ data: 'AAE=', parsed_data: null }, '\0\u0001'],
    [{ data: 'YQ==', parsed_data: 'a' }, 'a'],
    [{ data: null, parsed_data: 'a' }, 'a'],
  ])('%j is %j', (members, text) => {
    expect(readOne(members).data.toString()).toBe(text);
  });

  it.each([
    ['w6Q=', 'ä'],
    ['YWJj', 'abc'],
    ['+/+/', Buffer.from('+/+/', 'base64').toString()],
    [wrapped, `${'ABC'.repeat(15)}AB`],
    [wrapped.replace('\n', '\r\n'), `${'ABC'.repeat(15)}AB`],
    ['QUJD'.repeat(15), 'ABC'.repeat(15)],
  ])('data in canonical base64 is bytes: %j', (data, text) => {
    expect(readOne({ data }).data.toString()).toBe(text);
  });

  it.each([
    ['a URL', 'https://example.org/landing?a=1'],
    ['letters alone', 'wwwexample'],
    ['a digit too many', 'YWFhY'],
    ['no padding', 'w6Q'],
    ['padding that is short', 'YQ='],
    ['padding that is long', 'YWJj===='],
    ['padding alone', '===='],
    ['unused bits that are set', 'w6R='],
    ['unused bits that are set twice', 'YR=='],
    ['the alphabet of URLs', 'a-_b'],
    ['a space', 'YWJj YWJj'],
    ['a line that is short', 'YWJj\nYWJj'],
    ['a line feed at the end', 'YWJj\n'],
    ['letters beyond ASCII', 'Bücher'],
  ])('data that is not canonical base64 is text: %s', (_what, data) => {
    expect(readOne({ data }).data.toString()).toBe(data);
    expect(readOne({ data, parsed_data: data }).data.toString()).toBe(data);
  });

  it('of an administrator in the older encoding agrees with its parsed form, and keeps the encoding', () => {
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

describe('the ttl', () => {
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
  ])('%j is %j', (members, ttl) => {
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
  ])('%j are %j', (refs, read) => {
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
  ])('%j are %s', (members, permissions) => {
    expect(readOne(members).permissions).toBe(permissions);
  });
});

it('ignores timestamps and unknown properties', () => {
  for (const timestamp of ['2013-11-26T11:58:14Z', 'yesterday', 1385467094, null, {}]) {
    expect(readOne({ timestamp, unknown: [1] })).toEqual(readOne({}));
  }
});

it('reads a hundred thousand references without blocking the event loop', async () => {
  const value = { ...url, refs: Array<string>(50).fill('1:a/b') };
  const ms = await cpuMs(() => {
    expect(readInputs(Array<typeof value>(2048).fill(value))).toHaveLength(2048);
  });
  expect(ms).toBeLessThan(2000);
});
