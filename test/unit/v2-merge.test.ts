// An update keeps what v2 does not show, and never overwrites it.
import { describe, expect, it } from 'vitest';
import type { HandleValue } from '../../src/handle/value.js';
import { toV2 } from '../../src/v2/translation/translate.js';
import { planWrite } from '../../src/v2/translation/write-plan.js';
import { places, sent, textValue } from '../support/v2-values.js';

const secretToSend: HandleValue = { ...textValue(300, 'HS_SECKEY', 'geheim'), permissions: '1100' };
const secret: HandleValue = { ...secretToSend, timestamp: '2026-01-01T00:00:00Z' };
const url = textValue(1, 'URL', 'old');
const newUrl = textValue(1, 'URL', 'new');

const whole = (current: HandleValue[], next: HandleValue[]): HandleValue[] => {
  const plan = planWrite({ current, isFull: true, next });
  if (plan.kind !== 'whole') throw new Error('not one PUT');
  return plan.values;
};

describe('after the whole record was read', () => {
  it('the new list and the secret keys are sent together', () => {
    expect(whole([secret, url], [newUrl])).toEqual([newUrl, secretToSend]);
  });

  it('what the list leaves out goes', () => {
    expect(places(whole([url, textValue(2, 'EMAIL')], [newUrl]))).toEqual(['1 URL']);
  });

  it('a secret key that administrators may not read keeps that', () => {
    const kept = whole([{ ...secret, permissions: '0100' }], []);
    expect(kept[0]?.permissions).toBe('00100');
  });

  it('a value in the place of a secret key is refused', () => {
    const next = [textValue(300, 'URL')];
    expect(() => whole([secret], next)).toThrow(
      expect.objectContaining({ code: 'V2_INDEX_TAKEN', status: 400 }) as Error,
    );
  });

  it('another secret key in its place is refused too', () => {
    const next = [{ ...secretToSend, data: { format: 'string', value: 'other' } }];
    expect(() => whole([secret], next)).toThrow('idx 300');
  });

  it('the same secret key, sent twice by a repeated PUT, is one value', () => {
    expect(whole([secret], [secretToSend])).toEqual([secretToSend]);
  });

  it('a value that comes back as it was shown is sent in the form of the server', () => {
    const site = { ...textValue(2, 'HS_SITE'), data: { format: 'site', value: { unknown: 'member' } } };
    const back = sent(toV2([url, site]), [url, site]);
    expect(whole([url, site], back)).toContainEqual(site);
  });
});

describe('after only public values could be read', () => {
  const current = [url, textValue(2, 'EMAIL'), textValue(3, 'HS_SECKEY')];

  it('values are added, changed and removed by index, unseen ones left alone', () => {
    const next = [newUrl, textValue(7, 'DESC')];
    expect(planWrite({ current, isFull: false, next })).toEqual({
      kind: 'by-index',
      add: [next[1]],
      change: [newUrl],
      remove: [2],
    });
  });

  it('a value in the place of a secret key is refused', () => {
    const next = [textValue(3, 'URL')];
    expect(() => planWrite({ current, isFull: false, next })).toThrow('idx 3');
  });
});
