// ETags ignore the order and the timestamps of the visible values, and differ for every other visible change.
import { describe, expect, it } from 'vitest';
import type { HandleValue } from '../../src/handle/value.js';
import { recordEtag, textValue } from '../support/v2-values.js';

const value: HandleValue = {
  ...textValue(1, 'URL', 'x'),
  timestamp: '2026-11-21T09:26:40Z',
  references: [
    { handle: 'a/b', index: 1 },
    { handle: 'a/b', index: 2 },
  ],
};
const other = textValue(2, 'EMAIL');
const etag = recordEtag([value, other]);

describe('ePIC v2 ETag', () => {
  it('is strong and has 22 characters', () => {
    expect(etag).toMatch(/^"[\w-]{22}"$/);
  });

  describe('equivalent record', () => {
    it.each<[string, HandleValue[]]>([
      ['the values are in a different order', [other, value]],
      [
        'the references are in a different order',
        [{ ...value, references: value.references!.toReversed() }, other],
      ],
      ['the timestamp is different', [{ ...value, timestamp: '2020-01-01T00:00:00Z' }, other]],
      ['the same bytes are in base64', [{ ...value, data: { format: 'base64', value: 'eA==' } }, other]],
      ['the default permissions are explicit', [{ ...value, permissions: '1110' }, other]],
      ['a secret key is added', [value, other, textValue(300, 'HS_SECKEY')]],
    ])('has the same ETag when %s', (_case, values) => {
      expect(recordEtag(values)).toBe(etag);
    });
  });

  describe('different record', () => {
    it.each<[string, HandleValue[]]>([
      ['a value is removed', [value]],
      ['an index is different', [{ ...value, index: 3 }, other]],
      ['a type is different', [{ ...value, type: 'URN' }, other]],
      ['a byte is different', [{ ...value, data: { format: 'string', value: 'y' } }, other]],
      ['the ttl is different', [{ ...value, ttl: 1 }, other]],
      ['the ttl is a date', [{ ...value, ttl: '2030-01-02T03:04:05Z' }, other]],
      ['a reference is different', [{ ...value, references: [{ handle: 'a/c', index: 1 }] }, other]],
      ['the permissions are different', [{ ...value, permissions: '1100' }, other]],
    ])('has a different ETag when %s', (_case, values) => {
      expect(recordEtag(values)).not.toBe(etag);
    });
  });
});
