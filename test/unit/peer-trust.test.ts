import { describe, expect, test } from 'vitest';
import { createProxyTrust } from '../../src/server/client-address.js';

describe('trusted proxies', () => {
  test('change with each reload that adds or removes an address', () => {
    let configured = ['192.0.2.1'];
    const isTrusted = createProxyTrust(() => configured);
    const trusted = (): boolean[] => ['192.0.2.1', '198.51.100.1'].map(isTrusted);
    expect(trusted()).toEqual([true, false]);
    configured = ['198.51.100.1'];
    expect(trusted()).toEqual([false, true]);
    configured = [];
    expect(trusted()).toEqual([false, false]);
  });
});
