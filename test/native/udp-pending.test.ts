// The maximum number of UDP requests that wait for the Handle server.
import type { Host } from '../../src/host.js';
import { partial } from '../support/partial.js';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { createMetrics } from '../../src/observe/metrics.js';
import type { NativeConfig } from '../../src/plugins/native/plugin.js';
import { ENVELOPE_BYTES, decodeEnvelope, toPackets } from '../../src/plugins/native/codec.js';
import { type NativeOutcome, refusalMessage } from '../../src/plugins/native/reply.js';
import { createUdpListener } from '../../src/plugins/native/udp.js';
import { TimeSlicer } from '../../src/time-slicer.js';
import { gate } from '../support/gate.js';
import { testContext } from '../support/context.js';
import { createUncached, codeOf, nativeRequest, readResponse } from '../support/native-messages.js';
import { HANDLE } from '../support/upstream.js';

const MAX_PENDING = 10_000;

const REQUEST = nativeRequest(HANDLE);
const LONG = nativeRequest(HANDLE, { types: ['x'.repeat(200_000)] });
const LONG_PACKETS = toPackets(decodeEnvelope(LONG), LONG.subarray(ENVELOPE_BYTES));

/** Starts a listener whose requests all wait for the Handle server. `send` returns the response codes so far. */
function startWaiting(resolve = vi.fn((): Promise<NativeOutcome> => new Promise(() => undefined))) {
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
  const { socket, drain } = createUdpListener(partial<NativeConfig>(config), host, native, () => false);
  let isOpen = true;
  socket.once('close', () => (isOpen = false));
  onTestFinished(() => {
    if (isOpen) socket.close();
  });
  const codes: number[] = [];
  vi.spyOn(socket, 'send').mockImplementation(
    (packet: unknown) => void codes.push(codeOf(readResponse(packet as Buffer))),
  );
  const peer = { address: '192.0.2.1', port: 2641, family: 'IPv4', size: 0 };
  return { resolve, limited, codes, drain, send: (packet: Buffer) => socket.emit('message', packet, peer) };
}

describe('pending UDP requests', () => {
  test('are directed to TCP, and cause no upstream request, beyond the first 10,000', () => {
    const { resolve, limited, codes, send } = startWaiting();
    for (let count = 0; count < MAX_PENDING; count++) send(REQUEST);
    expect([resolve.mock.calls.length, codes]).toEqual([MAX_PENDING, []]);
    send(REQUEST);
    expect(codes).toEqual([2]);
    expect([resolve.mock.calls.length, limited.mock.calls]).toEqual([MAX_PENDING, [[{ reason: 'busy' }]]]);
  });

  test.each([
    ['datagrams', () => [Buffer.concat([REQUEST, Buffer.alloc(65_000)])], REQUEST.length + 65_000],
    ['requests in several packets', () => LONG_PACKETS, 200_000],
  ])('are directed to TCP beyond 8 MiB of %s', (_, packets, bytes) => {
    const { resolve, codes, send } = startWaiting();
    while (codes.length === 0) for (const packet of packets()) send(packet);
    expect(codes).toEqual([2]);
    expect(resolve.mock.calls.length).toBe(Math.ceil((8 * 2 ** 20) / bytes));
  });

  test('make room for others once they are answered', async () => {
    const answered = gate();
    const resolve = vi.fn(async () => {
      await answered.opened;
      return refusalMessage(100, 'miss');
    });
    const { codes, send } = startWaiting(resolve);
    const long = Buffer.concat([REQUEST, Buffer.alloc(65_000)]);
    while (codes.length === 0) send(long);
    const { length } = resolve.mock.calls;
    answered.open();
    await vi.waitFor(() => {
      expect(codes).toHaveLength(1 + length);
    });
    send(long);
    expect(resolve.mock.calls).toHaveLength(length + 1);
  });

  test('are not sent an answer after a stop has closed the socket', async () => {
    const gates = [gate(), gate()] as const;
    const answerAfter = async (opened: Promise<void>): Promise<NativeOutcome> => {
      await opened;
      return refusalMessage(100, 'miss');
    };
    const resolve = vi.fn<() => Promise<NativeOutcome>>();
    for (const { opened } of gates) resolve.mockImplementationOnce(() => answerAfter(opened));
    const { codes, drain, send } = startWaiting(resolve);
    send(REQUEST);
    const closed = drain(60_000);
    // Received during the stop, which waits only for the first request.
    send(REQUEST);
    gates[0].open();
    await closed;
    gates[1].open();
    await new Promise(setImmediate);
    expect(codes).toEqual([100]);
  });
});
