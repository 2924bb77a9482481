// The cache, ePIC v2 and the demo server interpret permissions identically.
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { toText } from '../../src/handle/bytes.js';
import { publicValues, isPublic, lastFourPermissions } from '../../src/handle/value.js';
import { runToEnd } from '../../src/time-slicer.js';
import { readOutcome } from '../../src/upstream/reply.js';
import { permissionsToSend, showPermissions } from '../../src/v2/translation/attributes.js';
import { unicodeTexts } from '../support/code-points.js';

const valueWith = (permissions: unknown) => ({
  index: 1,
  type: 'NOTE',
  data: { format: 'string', value: 'x' },
  permissions,
});

/** Returns whether the record interface shows a value in a record and in an error response. */
function shownBy(permissions: unknown): boolean[] {
  const value = valueWith(permissions);
  const record = JSON.stringify([value]);
  const inRecord = toText(runToEnd(publicValues(record, [value])).values) !== '[]';
  const body = `{"responseCode":302,"handle":"21.T1/a","values":${record}}`;
  const refusal = runToEnd(
    readOutcome({ status: 300, body, handle: '21.T1/a', headers: {}, caseSensitive: false }),
  );
  const inRefusal = refusal.kind === 'refused' && JSON.stringify(refusal.members).includes('"NOTE"');
  return [inRecord, inRefusal];
}

describe('value permissions', () => {
  describe('last four digits', () => {
    test.each([
      ['1110', true, 'rwr-'],
      ['1100', false, 'rw--'],
      ['1111', true, 'rwrw'],
      ['0010', true, '--r-'],
      ['01100', false, 'rw--'],
      ['00110', true, '-wr-'],
      ['10010', true, '--r-'],
      ['001100', false, 'rw--'],
      ['000000', false, '----'],
      // No server writes these permissions; they are private, but readable and writable by administrators.
      ['', false, 'rw--'],
      ['1', false, 'rw--'],
      ['10', false, 'rw--'],
      ['111', false, 'rw--'],
      ['rwr-', false, 'rw--'],
      ['1 11110', false, 'rw--'],
      ['1110\n', false, 'rw--'],
      ['*', false, 'rw--'],
      ['١١١٠', false, 'rw--'],
    ])('determine whether a value with the permissions %j is public', (permissions, expected, privs) => {
      expect(isPublic({ permissions })).toBe(expected);
      expect(shownBy(permissions)).toEqual([expected, expected]);
      expect(showPermissions(permissions)).toBe(privs);
    });

    test('determine public access for strings of four to six digits, while shorter strings are private', () => {
      for (let length = 0; length <= 6; length++) {
        for (let bits = 0; bits < 2 ** length; bits++) {
          const permissions = length === 0 ? '' : bits.toString(2).padStart(length, '0');
          const isReadable = length >= 4 && permissions.slice(-4)[2] === '1';
          expect(isPublic({ permissions }), permissions).toBe(isReadable);
          expect(showPermissions(permissions)[2] === 'r', permissions).toBe(isReadable);
        }
      }
    });

    test('never make a value public unless they are zeros and ones', () => {
      fc.assert(
        fc.property(unicodeTexts({ maxLength: 8 }), (permissions) => {
          const isReadable = /^[01]*[01]{2}1[01]$/.test(permissions) && !permissions.includes('\n');
          expect(isPublic({ permissions })).toBe(isReadable);
        }),
      );
    });

    test('default to 1110, like a Handle server', () => {
      expect(isPublic({})).toBe(true);
      expect(lastFourPermissions(undefined)).toBe('1110');
      expect(shownBy(undefined)).toEqual([true, true]);
    });

    test('survive their conversion for an upstream write', () => {
      fc.assert(
        fc.property(fc.stringMatching(/^[01]{4,6}$/), (permissions) => {
          expect(lastFourPermissions(permissionsToSend(permissions).permissions)).toBe(permissions.slice(-4));
        }),
      );
    });
  });

  test('have four digits, or are omitted, in all Handle server recordings', () => {
    const file = new URL('../fixtures/handle-server.json', import.meta.url);
    const recordings = JSON.parse(readFileSync(file, 'utf8')) as { response: { body?: string } | null }[];
    const bodies = recordings.map(({ response }) => response?.body ?? '');
    const written = bodies.flatMap((body) =>
      [...body.matchAll(/"permissions": ?"(\d*)"/g)].map(([, digits]) => digits ?? ''),
    );
    // Twelve digits are permissions inside HS_ADMIN data.
    const lengths = new Set(written.map(({ length }) => length));
    expect([...lengths].sort((one, other) => one - other)).toEqual([4, 12]);
  });
});
