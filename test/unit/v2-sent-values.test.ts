import { describe, expect, it } from 'vitest';
import type { HandleValue } from '../../src/handle/value.js';
import { adminValue, automaticAdmin, places, planWrite, sent, textValue } from '../support/v2-values.js';

/** Converts an ePIC v2 value, with text content by default, and returns the first value to send. */
const first = (members: object): HandleValue =>
  sent([{ type: 'X', ...('data' in members ? {} : { parsed_data: 'x' }), ...members }])[0]!;

describe('ePIC v2 values sent upstream', () => {
  describe('data', () => {
    it.each<[object, unknown]>([
      [{ parsed_data: 'ä\t\r\n漢😀' }, { format: 'string', value: 'ä\t\r\n漢😀' }],
      [{ parsed_data: '' }, { format: 'string', value: '' }],
      [{ data: 'https://example.org/' }, { format: 'string', value: 'https://example.org/' }],
      [{ parsed_data: 'a\u0001' }, { format: 'base64', value: 'YQE=' }],
      [{ data: '/w==' }, { format: 'base64', value: '/w==' }],
      [{ data: 'YQ==' }, { format: 'string', value: 'a' }],
      // These bytes encode an empty HS_VLIST.
      [{ data: 'AAAAAA==' }, { format: 'base64', value: 'AAAAAA==' }],
      [
        { type: 'HS_VLIST', parsed_data: [{ idx: '300', handle: '21.T1/USER01' }] },
        { format: 'vlist', value: [{ handle: '21.T1/USER01', index: 300 }] },
      ],
      [
        { type: 'HS_ADMIN', data: 'B/MAAAAKMC5OQS8xMTIzOQAAASw=' },
        { format: 'admin', value: { handle: '0.NA/11239', index: 300, permissions: '011111110011' } },
      ],
    ])('are converted from %j to %j', (members, data) => {
      expect(first(members).data).toEqual(data);
    });

    it('are empty for a value that has neither data nor parsed_data', () => {
      expect(sent([{ type: 'EMAIL' }])[0]).toMatchObject({ data: { format: 'string', value: '' } });
    });

    it('preserve extra administrator permission bits as bytes', () => {
      const data = 'F/MAAAAKMC5OQS8xMTIzOQAAASw=';
      expect(first({ type: 'HS_ADMIN', data }).data).toEqual({ format: 'base64', value: data });
    });
  });

  describe('permissions', () => {
    it.each([
      ['rwr-', undefined],
      ['rw--', '1100'],
      ['rwrw', '1111'],
      // The server ignores the first of four digits.
      ['-wr-', '00110'],
      ['----', '00000'],
    ])('are converted from %s to %s (1110 is omitted)', (privs, permissions) => {
      expect(first({ privs }).permissions).toBe(permissions);
    });
  });

  it('include references and an absolute ttl (as a date), but no timestamp', () => {
    expect(
      first({ ttl_type: 1, ttl: 1893456000, refs: ['1:a/b'], timestamp: '2013-11-26T11:58:14Z' }),
    ).toEqual({
      index: 1,
      type: 'X',
      data: { format: 'string', value: 'x' },
      ttl: '2030-01-01T00:00:00Z',
      references: [{ handle: 'a/b', index: 1 }],
    });
  });

  describe('indexes', () => {
    const values = (...idxs: unknown[]) => idxs.map((idx, at) => ({ type: `T${at}`, parsed_data: 'x', idx }));

    it('default to the lowest free indexes in order', () => {
      expect(places(sent(values(undefined, 2, '1', -1, undefined)))).toEqual([
        '3 T0',
        '2 T1',
        '1 T2',
        '4 T3',
        '5 T4',
        '100 HS_ADMIN',
      ]);
    });

    it('do not depend on the stored record, as in the original service', () => {
      const current = [textValue(1, 'EMAIL'), adminValue(100, automaticAdmin.admin)];
      expect(places(sent(values(undefined), current))).toEqual(['1 T0', '100 HS_ADMIN']);
    });

    it('exclude those of hidden values', () => {
      const current = [textValue(1, 'HS_SECKEY'), textValue(100, 'HS_SECKEY')];
      expect(places(sent(values(undefined), current))).toEqual(['2 T0', '101 HS_ADMIN']);
    });
  });

  describe('administrator', () => {
    it('is added after all other values', () => {
      expect(sent([{ type: 'X', parsed_data: 'x' }])).toEqual([
        textValue(1, 'X'),
        adminValue(100, automaticAdmin.admin),
      ]);
    });

    it('uses the next free index', () => {
      expect(places(sent([100, 101].map((idx) => ({ type: 'X', parsed_data: 'x', idx }))))).toContain(
        '102 HS_ADMIN',
      );
    });

    it('is not added when the list contains an administrator', () => {
      const body = [{ idx: 5, type: 'HS_ADMIN', data: 'B/MAAAAKMC5OQS8xMTIzOQAAASw=' }];
      expect(places(sent(body))).toEqual(['5 HS_ADMIN']);
    });

    it('is added when the list contains only a subtype', () => {
      expect(places(sent([{ type: 'HS_ADMIN.X', parsed_data: 'x' }]))).toEqual([
        '1 HS_ADMIN.X',
        '100 HS_ADMIN',
      ]);
    });

    it('is copied from the existing record when the list contains none', () => {
      const theirs = adminValue(101, { handle: '21.T1/GROUP', index: 200 });
      const current = [{ ...theirs, timestamp: '2026-01-01T00:00:00Z' }];
      const next = sent([{ type: 'URL', parsed_data: 'x' }], current);
      expect(planWrite({ current, isFull: true, next })).toMatchObject({ values: [{ index: 1 }, theirs] });
      expect(JSON.stringify(planWrite({ current, isFull: true, next }))).not.toContain('timestamp');
    });

    it('moves to a free index when its existing index is taken', () => {
      const theirs = adminValue(1, { handle: '21.T1/GROUP', index: 200 });
      expect(sent([{ type: 'URL', parsed_data: 'x' }], [theirs])[1]).toEqual({ ...theirs, index: 100 });
    });
  });
});
