// The native TCP listener: one message per connection, in pieces of any size, within limits.
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { fixed } from '../support/fixed.js';
import { exchangeTcp, askTcp, openNativeSocket, readToEnd } from '../support/native-client.js';
import { codeOf, indexesIn, nativeRequest, readResponse, textIn } from '../support/native-messages.js';
import { useNock } from '../support/nock.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { HANDLE, PATH, mockUpstream } from '../support/upstream.js';
import '../support/real-sockets.js';

useNock();

const ON = { NATIVE_TCP_PORT: '0' };
const REQUEST = nativeRequest(HANDLE);
const LARGEST = 262_144;

async function metricsOf(proxy: Proxy): Promise<string> {
  return JSON.stringify(await proxy.metrics());
}

describe('native TCP message', () => {
  it('fills the cache that all interfaces share', async () => {
    const upstream = mockUpstream();
    const { tcpPort, ask } = await startProxy(ON);
    expect(indexesIn(await askTcp(tcpPort, HANDLE))).toEqual([1, 2, 3]);
    await ask(PATH);
    expect(upstream.asked).toBe(1);
  });

  it('may arrive byte by byte', async () => {
    mockUpstream();
    const { tcpPort } = await startProxy(ON);
    const bytes = Array.from(REQUEST, (byte) => Buffer.from([byte]));
    expect(indexesIn(readResponse(await exchangeTcp(tcpPort, bytes)))).toEqual([1, 2, 3]);
  });

  it('gets a response after the client has half-closed the connection', async () => {
    mockUpstream();
    const { tcpPort } = await startProxy(ON);
    const answer = await exchangeTcp(tcpPort, [REQUEST], { isEnded: true });
    expect(codeOf(readResponse(answer))).toBe(1);
  });

  it('is the only message on its connection, whose further bytes are ignored', async () => {
    mockUpstream();
    const { tcpPort } = await startProxy(ON);
    const answer = await exchangeTcp(tcpPort, [Buffer.concat([REQUEST, REQUEST, Buffer.alloc(200_000)])]);
    expect(codeOf(readResponse(answer))).toBe(1);
  });

  it('is accepted up to the maximum length, and rejected beyond it', async () => {
    mockUpstream();
    const { tcpPort } = await startProxy(ON);
    const body = LARGEST - (nativeRequest('').length - 20);
    const largest = nativeRequest('a'.repeat(body));
    expect(largest.length).toBe(20 + LARGEST);
    expect(codeOf(readResponse(await exchangeTcp(tcpPort, [largest])))).toBe(100);
    const longer = Buffer.from(largest.subarray(0, 20));
    longer.writeInt32BE(LARGEST + 1, 16);
    expect(codeOf(readResponse(await exchangeTcp(tcpPort, [longer])))).toBe(2);
  });
});

describe('native TCP listener', () => {
  it('sends an error after the idle timeout, then closes the connection', async () => {
    mockUpstream();
    const { tcpPort } = await startProxy({ ...ON, ...fixed({ native: { tcp: { idleTimeoutMs: 100 } } }) });
    const answer = readResponse(await exchangeTcp(tcpPort, [REQUEST.subarray(0, 30)]));
    expect([codeOf(answer), textIn(answer)]).toEqual([4, 'Read timed out']);
  });

  it('does not extend the request timeout for a trickle of bytes', async () => {
    mockUpstream();
    const { tcpPort } = await startProxy({ ...ON, ...fixed({ native: { tcp: { requestTimeoutMs: 300 } } }) });
    const socket = await openNativeSocket(tcpPort);
    const received = readToEnd(socket);
    let sent = 0;
    const trickle = setInterval(() => socket.write(REQUEST.subarray(sent, ++sent)), 20);
    const answer = readResponse(await received);
    clearInterval(trickle);
    expect(textIn(answer)).toBe('Read timed out');
    expect(sent).toBeLessThan(REQUEST.length);
  });

  it('closes the connection of a client that has its response but never closes', async () => {
    mockUpstream();
    const { tcpPort, app } = await startProxy({
      ...ON,
      ...fixed({ native: { tcp: { requestTimeoutMs: 200 } } }),
    });
    const accepted = once(app.listeners[0]!.socket, 'connection') as Promise<[Socket]>;
    const socket = await openNativeSocket(tcpPort);
    const [serverSide] = await accepted;
    const closed = once(serverSide, 'close');
    socket.write(REQUEST);
    await readToEnd(socket);
    await closed;
  });

  it('closes a connection beyond the maximum immediately, and counts it', async () => {
    mockUpstream();
    const proxy = await startProxy({ ...ON, ...fixed({ native: { tcp: { maxConnections: 1 } } }) });
    await askTcp(proxy.tcpPort, HANDLE);
    const first = await openNativeSocket(proxy.tcpPort);
    const second = await openNativeSocket(proxy.tcpPort);
    expect(await readToEnd(second)).toHaveLength(0);
    expect(await metricsOf(proxy)).toMatch(/connections_dropped_total[^}]*"value":1/);
    first.destroy();
  });

  it('rejects the oldest incomplete message with code 2 when the memory budget is used up', async () => {
    mockUpstream();
    const { tcpPort } = await startProxy({
      ...ON,
      ...fixed({ http: { maxBufferedBodyBytes: 1024 } }),
      HTTP_MAX_BODY_SIZE: '100KiB',
    });
    const large = nativeRequest('a'.repeat(200_000));
    const oldest = await openNativeSocket(tcpPort);
    const answer = readToEnd(oldest);
    oldest.write(large.subarray(0, 90_000));
    const next = await openNativeSocket(tcpPort);
    next.write(large.subarray(0, 90_000));
    expect(codeOf(readResponse(await answer))).toBe(2);
    expect(codeOf(readResponse(await exchangeTcp(tcpPort, [REQUEST])))).toBe(1);
  });
});

describe('native TCP metrics', () => {
  it('count messages by interface, result and response code', async () => {
    mockUpstream();
    const proxy = await startProxy(ON);
    await askTcp(proxy.tcpPort, HANDLE);
    await askTcp(proxy.tcpPort, HANDLE);
    const metrics = await metricsOf(proxy);
    for (const result of ['miss', 'hit']) {
      expect(metrics).toContain(
        `{"value":1,"labels":{"interface":"native-tcp","result":"${result}","status":"1"}}`,
      );
    }
    expect((await proxy.app.operations.stats()).requests.byInterface).toEqual({ 'native-tcp': 2 });
  });
});
