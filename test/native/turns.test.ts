// Fair scheduling of native messages over TCP and UDP: the messages of one event-loop turn share one time slice.
import type { Host } from '../../src/host.js';
import { partial } from '../support/partial.js';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { createMemoryBudget } from '../../src/http/request-body.js';
import type { NativeConfig } from '../../src/plugins/native/plugin.js';
import type { Resolve } from '../../src/plugins/native/answer.js';
import { createTcpServer } from '../../src/plugins/native/tcp.js';
import { createUdpListener } from '../../src/plugins/native/udp.js';
import { MAX_SLICE_MS, TimeSlicer } from '../../src/time-slicer.js';
import { testContext } from '../support/context.js';
import { gate } from '../support/gate.js';
import { askTcp } from '../support/native-client.js';
import { createUncached, codeOf, nativeRequest, readResponse } from '../support/native-messages.js';
import { HANDLE } from '../support/upstream.js';
import '../support/real-sockets.js';

const CLIENTS = 3;
const UNBOUNDED = {
  maxConnections: 100,
  maxConnectionsPerNetwork: 0,
  idleTimeoutMs: 60_000,
  requestTimeoutMs: 60_000,
};

const configWith = (bytesPerSecond: number): NativeConfig =>
  partial({ server: { host: '127.0.0.1', reusePort: false }, native: { udp: { bytesPerSecond } } });

/** Answers each message in the time of a slice. Turns of the event loop are run by hand. */
function createSlowAnswer() {
  let nowMs = 0;
  const state = { answered: 0, turns: [] as (() => void)[] };
  const context = testContext({ clock: { ...systemClock, now: () => 0, monotonic: () => 0 } });
  const resolve: Resolve = () => {
    nowMs += MAX_SLICE_MS;
    state.answered++;
    return { responseCode: 100, body: { kind: 'text', text: '' }, result: 'hit' };
  };
  const native = createUncached(context, resolve, { isLarge: true });
  const slicer = new TimeSlicer({ monotonic: () => nowMs, nextTurn: (run) => state.turns.push(run) });
  const answersByTurn = (): number[] => {
    const inEachTurn = [state.answered];
    for (let turn = state.turns.shift(); turn !== undefined; turn = state.turns.shift()) {
      turn();
      inEachTurn.push(state.answered);
    }
    return [...new Set(inEachTurn)];
  };
  return { context, native, host: partial<Host>({ ...context, slicer }), answersByTurn };
}

describe('time slices of native messages', () => {
  test('defer the second long TCP message to the next event-loop turn', async () => {
    const { host, native, answersByTurn } = createSlowAnswer();
    let received = 0;
    const allReceived = gate();
    const bounds = {
      isTrustedProxy: () => false,
      unsent: createMemoryBudget(1_000_000),
      bodies: createMemoryBudget(1_000_000),
    };
    const server = createTcpServer(partial(UNBOUNDED), { ...host, ...bounds }, native, () => {
      if (++received === CLIENTS) allReceived.open();
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => {
      server.close();
    });
    const { port } = server.address() as AddressInfo;

    const answers = Array.from({ length: CLIENTS }, () => askTcp(port, HANDLE));
    await allReceived.opened;
    expect(answersByTurn()).toEqual([1, 2, 3]);
    expect((await Promise.all(answers)).map(codeOf)).toEqual([100, 100, 100]);
  });

  test('defer the second UDP message about a large record to the next event-loop turn', async () => {
    const { host, native, answersByTurn } = createSlowAnswer();
    const { socket, drain } = createUdpListener(configWith(0), host, native, () => false);
    const replies: Buffer[] = [];
    vi.spyOn(socket, 'send').mockImplementation((packet: unknown) => void replies.push(packet as Buffer));
    for (let client = 1; client <= CLIENTS; client++) {
      const peer = { address: `192.0.2.${client}`, port: 2641, family: 'IPv4', size: 0 };
      socket.emit('message', nativeRequest(HANDLE), peer);
    }
    expect(answersByTurn()).toEqual([1, 2, 3]);
    await drain(60_000);
    expect(replies.map((packet) => codeOf(readResponse(packet)))).toEqual([100, 100, 100]);
  });

  test('apply the UDP limit of a network to deferred responses', async () => {
    const { context, host, native, answersByTurn } = createSlowAnswer();
    const limited = vi.fn<(labels: object) => void>();
    vi.spyOn(context.metrics, 'counterOf').mockReturnValue(limited);
    const { socket, drain } = createUdpListener(configWith(1), host, native, () => false);
    const send = vi.spyOn(socket, 'send').mockImplementation(() => undefined);
    for (let client = 1; client <= CLIENTS; client++) {
      const peer = { address: `192.0.2.${client}`, port: 2641, family: 'IPv4', size: 0 };
      socket.emit('message', nativeRequest(HANDLE), peer);
    }
    answersByTurn();
    await drain(60_000);
    expect(send).toHaveBeenCalledTimes(1);
    expect(limited.mock.calls).toEqual([[{ reason: 'rate' }], [{ reason: 'rate' }]]);
  });
});
