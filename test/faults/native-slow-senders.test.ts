// Native TCP clients that send byte by byte: they do not block other clients at the connection limit.
import '../support/real-sockets.js';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { startDemoServer } from '../support/demo.js';
import { fixed } from '../support/fixed.js';
import { askTcp, openNativeSocket, readToEnd } from '../support/native-client.js';
import { codeOf, nativeRequest, readResponse } from '../support/native-messages.js';
import { type Proxy, startProxy } from '../support/proxy.js';

const HANDLE = '21.T11998/page';
const REQUEST = nativeRequest(HANDLE);
const demo = await startDemoServer();

/** The clock and the connection sampling are fake; sockets are real. */
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

const start = (env: Record<string, string>): Promise<Proxy> =>
  startProxy({ UPSTREAM_URL: demo.url, NATIVE_TCP_PORT: '0', ...env });

/** Opens `count` connections, and waits until the proxy has read the first bytes of a message on each. */
async function openSlow({ tcpPort, app }: Proxy, count: number): Promise<Socket[]> {
  const slow: Socket[] = [];
  for (let at = 0; at < count; at++) {
    const accepted = once(app.listeners[0]!.socket, 'connection') as Promise<[Socket]>;
    const socket = await openNativeSocket(tcpPort);
    const [other] = await accepted;
    const read = once(other, 'data');
    socket.write(REQUEST.subarray(0, 30));
    await read;
    slow.push(socket);
  }
  return slow;
}

describe('slow native TCP sender', () => {
  test('is disconnected in favour of a new client when it has been sending for longest', async () => {
    const proxy = await start(fixed({ native: { tcp: { maxConnections: 2 } } }));
    const [oldest, other] = (await openSlow(proxy, 2)) as [Socket, Socket];
    for (let sent = 30; sent < 34; sent++) {
      for (const socket of [oldest, other]) socket.write(REQUEST.subarray(sent, sent + 1));
      vi.advanceTimersByTime(500);
    }
    const cut = readToEnd(oldest);
    expect(codeOf(await askTcp(proxy.tcpPort, HANDLE))).toBe(1);
    expect(await cut).toHaveLength(0);
    const answer = readToEnd(other);
    other.write(REQUEST.subarray(34));
    expect(codeOf(readResponse(await answer))).toBe(1);
  });

  test('stays connected during its first second, while the new client is disconnected', async () => {
    const proxy = await start(fixed({ native: { tcp: { maxConnections: 1 } } }));
    const [slow] = (await openSlow(proxy, 1)) as [Socket];
    vi.advanceTimersByTime(500);
    expect(await readToEnd(await openNativeSocket(proxy.tcpPort))).toHaveLength(0);
    const answer = readToEnd(slow);
    slow.write(REQUEST.subarray(30));
    expect(codeOf(readResponse(await answer))).toBe(1);
  });

  test('stays connected while its request waits for the Handle server', async () => {
    const proxy = await start(fixed({ native: { tcp: { maxConnections: 1 } } }));
    demo.hold.holdReplies('GET');
    const waiting = await openNativeSocket(proxy.tcpPort);
    const answer = readToEnd(waiting);
    waiting.write(nativeRequest('21.T11998/held'));
    await expect.poll(() => demo.askedFor('21.T11998/held')).toBe(1);
    vi.advanceTimersByTime(5000);
    expect(await readToEnd(await openNativeSocket(proxy.tcpPort))).toHaveLength(0);
    demo.hold.sendHeld('GET');
    expect(codeOf(readResponse(await answer))).toBe(100);
  });
});
