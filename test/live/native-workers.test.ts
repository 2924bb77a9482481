// The native listeners of several workers: one port each, requests of several packets, a clean stop.
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { ENVELOPE_BYTES, decodeEnvelope } from '../../src/native/codec/envelope.js';
import { toPackets } from '../../src/native/codec/packets.js';
import { startBuiltProxy, startMain } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { askTcp, exchangeTcp, exchangeUdp, openNativeSocket } from '../support/native-client.js';
import { codeOf, indexesIn, nativeRequest, readResponse } from '../support/native-messages.js';
import { adminValue, textValue } from '../handle-server/seed.js';

const HANDLE = '21.T11998/page';
const demo = await startDemoServer();
demo.put(HANDLE, [textValue(1, 'URL', 'https://example.org/'), adminValue()]);

const startNative = async (workers: string) => {
  const ON = { NATIVE_TCP_PORT: '0', NATIVE_UDP_PORT: '0', NATIVE_UDP_BYTES_PER_SECOND: '0B' };
  const proxy = await startBuiltProxy({ UPSTREAM_URL: demo.url, SERVER_WORKERS: workers, ...ON });
  const listening = proxy.logs().find(({ msg }) => msg === 'listening')!;
  const portOf = (name: string): number => Number(String(listening[name]).split(':').at(-1));
  return { proxy, tcpPort: portOf('nativeTcp'), udpPort: portOf('nativeUdp') };
};

test('requests of several packets are put together, whichever worker received them', async () => {
  const { udpPort, tcpPort } = await startNative('2');
  expect(indexesIn(await askTcp(tcpPort, HANDLE))).toEqual([1, 100]);
  for (let requestId = 1; requestId <= 30; requestId++) {
    const request = nativeRequest(HANDLE, { types: ['x'.repeat(3000), 'URL'], requestId });
    const packets = toPackets(decodeEnvelope(request), request.subarray(ENVELOPE_BYTES));
    const [answer] = await exchangeUdp(udpPort, packets);
    expect(indexesIn(readResponse(answer!))).toEqual([1]);
  }
});

test('a stop answers what has come, and waits for no silent connection', async () => {
  const { proxy, tcpPort } = await startNative('1');
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

test('a port in use is named with its key, and ends the start', async () => {
  const { udpPort, tcpPort } = await startNative('1');
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
