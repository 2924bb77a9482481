// Fair scheduling of native TCP messages: the messages of one event-loop turn share one time slice.
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createMemoryBudget } from '../../src/http/request-body.js';
import { createAnswer } from '../../src/native/answer.js';
import { NO_SITE } from '../../src/native/site-record.js';
import { createTcpServer } from '../../src/native/tcp.js';
import { MAX_SLICE_MS, TimeSlicer } from '../../src/time-slicer.js';
import { testContext } from '../support/context.js';
import { gate } from '../support/gate.js';
import { askTcp } from '../support/native-client.js';
import { NO_CACHE, codeOf } from '../support/native-messages.js';
import { HANDLE } from '../support/upstream.js';
import '../support/real-sockets.js';

const CLIENTS = 3;
const UNBOUNDED = {
  maxConnections: 100,
  maxConnectionsPerNetwork: 0,
  idleTimeoutMs: 60_000,
  requestTimeoutMs: 60_000,
};

describe('time slices of native TCP messages', () => {
  test('defer the second long message to a later event-loop turn', async () => {
    let nowMs = 0;
    let answered = 0;
    let received = 0;
    const turns: (() => void)[] = [];
    const allReceived = gate();
    const context = testContext();
    const native = createAnswer(context, {
      ...NO_CACHE,
      resolve() {
        nowMs += MAX_SLICE_MS;
        answered++;
        return { responseCode: 100, body: { kind: 'text', text: '' }, result: 'hit' };
      },
      site: NO_SITE,
    });
    const server = createTcpServer(UNBOUNDED, context, {
      native,
      slicer: new TimeSlicer({ monotonic: () => nowMs, nextTurn: (run) => turns.push(run) }),
      isTrustedProxy: () => false,
      unsent: createMemoryBudget(1_000_000),
      bodies: createMemoryBudget(1_000_000),
      onMessage() {
        if (++received === CLIENTS) allReceived.open();
      },
      admit: () => undefined,
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => {
      server.close();
    });
    const { port } = server.address() as AddressInfo;

    const answers = Array.from({ length: CLIENTS }, () => askTcp(port, HANDLE));
    await allReceived.opened;
    /** Answers after each turn in which a message was answered; the turns between are left to others. */
    const inEachSlice = [answered];
    for (let turn = turns.shift(); turn !== undefined; turn = turns.shift()) {
      turn();
      if (answered !== inEachSlice.at(-1)) inEachSlice.push(answered);
    }
    expect(inEachSlice).toEqual([1, 2, 3]);
    expect((await Promise.all(answers)).map(codeOf)).toEqual([100, 100, 100]);
  });
});
