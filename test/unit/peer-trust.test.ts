import { describe, expect, test } from 'vitest';
import { Live } from '../../src/config/live.js';
import { createProxyTrust } from '../../src/http/client-address.js';

describe('trusted proxies', () => {
  test('change with each reload that adds or removes an address', () => {
    const trusting = (...trustedProxies: string[]) => ({ http: { trustedProxies } });
    const settings = new Live(trusting('192.0.2.1'));
    const isTrusted = createProxyTrust(settings);
    const trusted = (): boolean[] => ['192.0.2.1', '198.51.100.1'].map(isTrusted);
    expect(trusted()).toEqual([true, false]);
    settings.reload(trusting('198.51.100.1'));
    expect(trusted()).toEqual([false, true]);
    settings.reload(trusting());
    expect(trusted()).toEqual([false, false]);
  });
});
