// Error messages for a listener that cannot open.
import { describe, expect, test } from 'vitest';
import { describeListenFailure } from '../../src/app/listen.js';

const AT = { host: '127.0.0.1', port: 80 };

describe('listener error message', () => {
  test.each([
    ['EADDRINUSE', /another program uses this port.* server\.port \(PORT\)/],
    ['EACCES', /may not open this port.* server\.port \(PORT\).*above 1023/],
    ['ENOTFOUND', /host name is unknown.* server\.host \(HOST\)/],
    ['EAI_AGAIN', /host name is unknown.* server\.host \(HOST\)/],
    ['EADDRNOTAVAIL', /does not have the address.* server\.host \(HOST\)/],
    ['EMFILE', /server\.host \(HOST\) and server\.port \(PORT\)/],
  ])('names the key and the remedy for %s', (code, text) => {
    const message = describeListenFailure({ host: 'server.host', port: 'server.port' }, AT, {
      code,
      message: '',
    });
    expect(message).toMatch(text);
    expect(message).toContain(`Cannot listen on 127.0.0.1:80 (${code}): `);
  });

  test('names the keys of the admin listener', () => {
    const message = describeListenFailure(
      { host: 'admin.host', port: 'admin.port' },
      { host: '::1', port: 9090 },
      { code: 'EADDRINUSE', message: '' },
    );
    expect(message).toMatch(/^Cannot listen on \[::1\]:9090 .*admin\.port \(ADMIN_PORT\)/);
  });

  test('names the keys of the native TCP listener', () => {
    const message = describeListenFailure(
      { host: 'native.host', port: 'native.tcp.port' },
      { host: '::', port: 2641 },
      { code: 'EADDRINUSE', message: '' },
    );
    expect(message).toMatch(/^Cannot listen on \[::\]:2641 .*native\.tcp\.port \(NATIVE_TCP_PORT\)/);
  });
});
