// Native listeners of the built program: graceful shutdown, and a port in use.
import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import { startBuiltProxy, startMain } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { exchangeTcp, openNativeSocket } from '../support/native-client.js';
import { codeOf, nativeRequest, readResponse } from '../support/native-messages.js';

const demo = await startDemoServer();

const startNative = async () => {
  const ON = { NATIVE_TCP_PORT: '0', NATIVE_UDP_PORT: '0' };
  const proxy = await startBuiltProxy({ UPSTREAM_URL: demo.url, ...ON });
  const listening = proxy.logs().find(({ msg }) => msg === 'listening')!;
  const portOf = (name: string): number => Number(String(listening[name]).split(':').at(-1));
  return { proxy, tcpPort: portOf('nativeTcp'), udpPort: portOf('nativeUdp') };
};

describe('native listeners of the built program', () => {
  test('respond to received requests on shutdown, and do not wait for silent connections', async () => {
    const { proxy, tcpPort } = await startNative();
    demo.delay(1000);
    const silent = await openNativeSocket(tcpPort);
    const answer = exchangeTcp(tcpPort, [nativeRequest('21.T11998/slow')]);
    await expect.poll(() => demo.askedFor('21.T11998/slow')).toBe(1);
    const closed = once(silent.resume(), 'end');
    expect(await proxy.stop()).toMatchObject({ code: 0 });
    demo.heal();
    expect(codeOf(readResponse(await answer))).toBe(100);
    await closed;
  });

  test('fail the start, and name the configuration key, when a port is in use', async () => {
    const { udpPort, tcpPort } = await startNative();
    const env = { UPSTREAM_URL: demo.url, LOG_LEVEL: 'silent' };
    for (const [variable, port] of [
      ['NATIVE_TCP_PORT', tcpPort],
      ['NATIVE_UDP_PORT', udpPort],
    ] as const) {
      const program = startMain({ ...env, [variable]: String(port) });
      expect(await program.exited).toMatchObject({ code: 2 });
      expect(program.stderr()).toContain(`another program uses this port. Stop it, or set native.`);
      expect(program.stderr()).toContain(variable);
    }
  });
});
