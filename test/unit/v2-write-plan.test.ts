// The plan of an update preserves hidden values.
import { describe, expect, it } from 'vitest';
import type { HandleValue } from '../../src/handle/value.js';
import { places, planWrite, sent, textValue, toV2 } from '../support/v2-values.js';

const secretToSend: HandleValue = { ...textValue(300, 'HS_SECKEY', 'geheim'), permissions: '1100' };
const secret: HandleValue = { ...secretToSend, timestamp: '2026-01-01T00:00:00Z' };
const url = textValue(1, 'URL', 'old');
const newUrl = textValue(1, 'URL', 'new');

const whole = (current: HandleValue[], next: HandleValue[]): HandleValue[] => {
  const plan = planWrite({ current, isFull: true, next });
  if (plan.kind !== 'whole') throw new Error('not one PUT');
  return plan.values;
};

describe('ePIC v2 write plan for the whole record', () => {
  it('sends the new list together with the existing secret keys', () => {
    expect(whole([secret, url], [newUrl])).toEqual([newUrl, secretToSend]);
  });

  it('drops values omitted from the list', () => {
    expect(places(whole([url, textValue(2, 'EMAIL')], [newUrl]))).toEqual(['1 URL']);
  });

  it('preserves the permissions of a secret key that administrators cannot read', () => {
    const kept = whole([{ ...secret, permissions: '0100' }], []);
    expect(kept[0]?.permissions).toBe('00100');
  });

  it('rejects a different value at the index of a secret key', () => {
    const next = [textValue(300, 'URL')];
    expect(() => whole([secret], next)).toThrow(
      expect.objectContaining({ code: 'V2_INDEX_TAKEN', status: 400 }) as Error,
    );
  });

  it('rejects a different secret key at the same index', () => {
    const next = [{ ...secretToSend, data: { format: 'string', value: 'other' } }];
    expect(() => whole([secret], next)).toThrow('idx 300');
  });

  it('accepts the same secret key in a repeated PUT', () => {
    expect(whole([secret], [secretToSend])).toEqual([secretToSend]);
  });

  it('sends an unchanged value in the format of the server', () => {
    const site = { ...textValue(2, 'HS_SITE'), data: { format: 'site', value: { unknown: 'member' } } };
    const back = sent(toV2([url, site]), [url, site]);
    expect(whole([url, site], back)).toContainEqual(site);
  });
});

describe('ePIC v2 write plan for public values', () => {
  const current = [url, textValue(2, 'EMAIL'), textValue(3, 'HS_SECKEY')];

  it('adds, changes and removes values by index, and retains hidden values', () => {
    const next = [newUrl, textValue(7, 'DESC')];
    expect(planWrite({ current, isFull: false, next })).toEqual({
      kind: 'by-index',
      add: [next[1]],
      change: [newUrl],
      remove: [2],
    });
  });

  it('rejects a value at the index of a secret key', () => {
    const next = [textValue(3, 'URL')];
    expect(() => planWrite({ current, isFull: false, next })).toThrow('idx 3');
  });
});
