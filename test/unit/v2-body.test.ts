import { describe, expect, it } from 'vitest';
import { ServiceError } from '../../src/errors.js';
import { cpuMs } from '../support/cpu-time.js';
import { readInputs } from '../support/v2-values.js';

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

describe('ePIC v2 body', () => {
  describe('rejection that names the value and property', () => {
    it.each<[string, unknown, string]>([
      ['it is an object', { values: [] }, 'give an array of values'],
      ['it is null', null, 'give an array of values'],
      ['it is a string', 'x', 'give an array of values'],
      ['it has too many values', Array.from({ length: 2049 }, () => url), 'give at most 2048 values'],
      ['a value is a string', [url, 'x'], '[1]: give an object'],
      ['a value is null', [null], '[0]: give an object'],
      ['a value is an array', [[]], '[0]: give an object'],
      ['the type is missing', [{ parsed_data: 'x' }], '[0].type: give a string'],
      ['the type is a number', [{ ...url, type: 7 }], '[0].type: give a string'],
      ['idx is nonsense', [{ ...url, idx: 'one' }], '[0].idx: give a whole number from 1 to 2147483647'],
      ['idx is an empty string', [{ ...url, idx: '' }], '[0].idx: give a whole number'],
      ['idx has an exponent', [{ ...url, idx: '1e3' }], '[0].idx: give a whole number'],
      ['idx has a leading space', [{ ...url, idx: ' 7' }], '[0].idx: give a whole number'],
      ['idx has a trailing space', [{ ...url, idx: '7 ' }], '[0].idx: give a whole number'],
      ['idx is true', [{ ...url, idx: true }], '[0].idx: give a whole number'],
      ['idx is a list', [{ ...url, idx: ['7'] }], '[0].idx: give a whole number'],
      ['idx is a fraction', [{ ...url, idx: 1.5 }], '[0].idx: give a whole number'],
      ['idx is 0', [{ ...url, idx: 0 }], '[0].idx: give a whole number from 1 to 2147483647'],
      ['idx is -2', [{ ...url, idx: -2 }], '[0].idx: give a whole number'],
      [
        'idx is over 31 bits',
        [{ ...url, idx: 2 ** 31 }],
        '[0].idx: give a whole number from 1 to 2147483647',
      ],
      [
        'idx repeats',
        [url, { ...url, idx: 2 }, { ...url, idx: '2' }],
        '[2].idx: give another index; [1] has 2',
      ],
      ['it is an empty list', [], 'give at least one value'],
      ['HS_VLIST has no data', [{ type: 'HS_VLIST' }], '[0].parsed_data: give parsed_data or data'],
      ['a secret key has no data', [{ type: 'HS_SECKEY' }], '[0].parsed_data: give parsed_data or data'],
      ['data is a number', [{ type: 'URL', data: 5 }], '[0].data: give a string'],
      ['data contains a lone surrogate', [{ type: 'URL', data: '\ud800' }], '[0].data: give whole Unicode'],
      ['HS_ADMIN data is not base64', [{ type: 'HS_ADMIN', data: 'w6Q' }], '[0].data: give base64'],
      ['HS_VLIST data is not base64', [{ type: 'HS_VLIST', data: '1:a/b' }], '[0].data: give base64'],
      [
        'data differs from parsed_data',
        [{ type: 'URL', data: 'http://x/', parsed_data: 'http://y/' }],
        '[0].parsed_data: data has different content',
      ],
      [
        'data and parsed_data disagree',
        [{ ...url, data: 'YQ==' }],
        '[0].parsed_data: data has different content',
      ],
      [
        'an ordinary type has an object',
        [{ type: 'URL', parsed_data: {} }],
        '[0].parsed_data: give a string',
      ],
      [
        'an ordinary type has an array',
        [{ type: 'URL', parsed_data: ['x'] }],
        '[0].parsed_data: give a string',
      ],
      [
        'parsed_data contains a lone surrogate',
        [{ ...url, parsed_data: '\ud800' }],
        '[0].parsed_data: give whole Unicode',
      ],
      [
        'HS_ADMIN parsed_data is a string',
        [{ type: 'HS_ADMIN', parsed_data: 'x' }],
        '[0].parsed_data: give an object',
      ],
      ['HS_ADMIN has no data', [{ type: 'HS_ADMIN' }], '[0].parsed_data: give parsed_data or data'],
      [
        'HS_ADMIN lacks adminId',
        [{ ...noPerms, parsed_data: {} }],
        '[0].parsed_data: adminId: give a string',
      ],
      ['HS_ADMIN lacks a permission', [noPerms], '[0].parsed_data: perms.add_handle: give true or false'],
      [
        'HS_ADMIN has null as permissions',
        [{ type: 'HS_ADMIN', parsed_data: { adminId: 'a/b', adminIdIndex: 1, perms: null } }],
        '[0].parsed_data: perms: give an object of the twelve permissions',
      ],
      [
        'data and parsed_data are different control characters',
        [{ ...url, parsed_data: '\u0001', data: 'Ag==' }],
        '[0].parsed_data: data has different content',
      ],
      [
        'HS_VLIST contains a string',
        [{ type: 'HS_VLIST', parsed_data: ['1:a/b'] }],
        '[0].parsed_data: [0]: give an object of idx and handle',
      ],
      [
        'HS_VLIST parsed_data is a string',
        [{ type: 'HS_VLIST', parsed_data: 'x' }],
        '[0].parsed_data: give an array',
      ],
      [
        'HS_VLIST lacks idx',
        [{ type: 'HS_VLIST', parsed_data: [{ handle: 'a' }] }],
        '[0].parsed_data: [0].idx:',
      ],
      ['ttl is a word', [{ ...url, ttl: 'soon' }], '[0].ttl: give whole seconds'],
      ['ttl is a fraction', [{ ...url, ttl: 1.5 }], '[0].ttl: give whole seconds'],
      ['ttl is over 31 bits', [{ ...url, ttl: 2 ** 31 }], '[0].ttl: give whole seconds'],
      ['ttl is the lowest 32-bit integer', [{ ...url, ttl: -(2 ** 31) }], '[0].ttl: give whole seconds'],
      [
        'ttl is the lowest 32-bit integer as a string',
        [{ ...url, ttl_type: 0, ttl: '-2147483648' }],
        '[0].ttl: give whole seconds',
      ],
      ['a time is before 1970', [{ ...url, ttl_type: 1, ttl: -1 }], '[0].ttl: with ttl_type 1'],
      ['a date is before 1970', [{ ...url, ttl: '1969-12-31T23:59:59Z' }], '[0].ttl: with ttl_type 1'],
      ['ttl is an object', [{ ...url, ttl: {} }], '[0].ttl: give seconds or a date'],
      [
        'a date has ttl_type 0',
        [{ ...url, ttl_type: 0, ttl: '2030-01-01T00:00:00Z' }],
        '[0].ttl: give whole',
      ],
      ['a date is missing', [{ ...url, ttl_type: 1 }], '[0].ttl: with ttl_type 1 give a date'],
      [
        'a date does not exist',
        [{ ...url, ttl_type: 1, ttl: '2030-02-30T00:00:00Z' }],
        '[0].ttl: with ttl_type 1',
      ],
      [
        'a date is out of range',
        [{ ...url, ttl_type: 1, ttl: '2039-01-01T00:00:00Z' }],
        '[0].ttl: with ttl_type 1',
      ],
      [
        'a date has no time zone',
        [{ ...url, ttl_type: 1, ttl: '2030-01-01T00:00:00' }],
        '[0].ttl: with ttl_type 1',
      ],
      ['ttl_type is unknown', [{ ...url, ttl_type: 2 }], '[0].ttl_type: give a whole number from 0 to 1'],
      ['refs is an object', [{ ...url, refs: {} }], '[0].refs: give an array'],
      ['refs is a string', [{ ...url, refs: '1:a/b' }], '[0].refs: give an array'],
      ['a ref has no index', [{ ...url, refs: ['1:a/b', 'a/b'] }], '[0].refs[1]: give {"idx": 1'],
      [
        'a ref has an index that is not a number',
        [{ ...url, refs: ['x1:a/b'] }],
        '[0].refs[0]: give {"idx": 1',
      ],
      ['a ref has no handle', [{ ...url, refs: [{ idx: 1 }] }], '[0].refs[0]: give {"idx": 1'],
      ['there are too many refs', [{ ...url, refs: Array(2049).fill(7) }], '[0].refs: give at most 2048'],
      [
        'HS_VLIST is too long',
        [{ type: 'HS_VLIST', parsed_data: Array(2049).fill(7) }],
        '[0].parsed_data: give at most 2048',
      ],
      ['privs is short', [{ ...url, privs: 'rw' }], '[0].privs: give four characters such as rwr-'],
      ['privs is mixed up', [{ ...url, privs: 'wrwr' }], '[0].privs: give four characters'],
      ['privs is long', [{ ...url, privs: 'rwr-r' }], '[0].privs: give four characters'],
      [
        'privs has a leading character too many',
        [{ ...url, privs: '-rwr-' }],
        '[0].privs: give four characters',
      ],
      ['privs is a number', [{ ...url, privs: 1110 }], '[0].privs: give four characters such as rwr-'],
      ['a permission is a number', [{ ...url, pub_read: 1 }], '[0].pub_read: give true or false'],
    ])('occurs when %s', (_reason, body, message) => {
      expect(refusal(body)).toContain(`Invalid list of values (ePIC v2): ${message}`);
    });
  });

  it('is parsed in less than 2 s of CPU time when it has 100,000 references', async () => {
    const value = { ...url, refs: Array<string>(50).fill('1:a/b') };
    const ms = await cpuMs(() => {
      expect(readInputs(Array<typeof value>(2048).fill(value))).toHaveLength(2048);
    });
    expect(ms).toBeLessThan(2000);
  });
});
