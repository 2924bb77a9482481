// The maximum number of UDP requests that wait for the Handle server.
import type { Host } from '../../src/host.js';
import { partial } from '../support/partial.js';
import { describe, expect, test, vi } from 'vitest';
import { createMetrics } from '../../src/observe/metrics.js';
import type { NativeConfig } from '../../src/plugins/native/plugin.js';
import { createUdpListener } from '../../src/plugins/native/udp.js';
import { TimeSlicer } from '../../src/time-slicer.js';
import { testContext } from '../support/context.js';
import { createUncached, codeOf, nativeRequest, readResponse } from '../support/native-messages.js';
import { HANDLE } from '../support/upstream.js';

const MAX_PENDING = 10_000;

describe('pending UDP requests', () => {
  test('are directed to TCP, and cause no upstream request, beyond the first 10,000', () => {
    const resolve = vi.fn(() => new Promise<never>(() => undefined));
    const context = testContext({ metrics: createMetrics() });
    const native = createUncached(context, resolve);
    const limited = vi.fn<(labels: object) => void>();
    vi.spyOn(context.metrics, 'counterOf').mockReturnValue(limited);
    const config = {
      server: { host: '127.0.0.1', reusePort: false },
      native: { udp: { bytesPerSecond: 0 } },
    };
    const slicer = new TimeSlicer({ monotonic: () => 0, nextTurn: setImmediate });
    const host = partial<Host>({ ...context, slicer });
    const { socket } = createUdpListener(partial<NativeConfig>(config), host, native, () => false);
    const replies: Buffer[] = [];
    vi.spyOn(socket, 'send').mockImplementation((packet: unknown) => void replies.push(packet as Buffer));
    const peer = { address: '192.0.2.1', port: 2641, family: 'IPv4', size: 0 };
    for (let count = 0; count < MAX_PENDING; count++) socket.emit('message', nativeRequest(HANDLE), peer);
    expect([resolve.mock.calls.length, replies.length]).toEqual([MAX_PENDING, 0]);
    socket.emit('message', nativeRequest(HANDLE), peer);
    expect(replies.map((packet) => codeOf(readResponse(packet)))).toEqual([2]);
    expect([resolve.mock.calls.length, limited.mock.calls]).toEqual([MAX_PENDING, [[{ reason: 'busy' }]]]);
    socket.close();
  });
});
