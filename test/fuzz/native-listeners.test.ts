// Mutated datagrams and streams for the native listeners: each stream gets a response and ends, and a UDP
// response has at most 64 times the bytes of its datagram. `npm run fuzz` sends a million datagrams and a
// hundred thousand streams.
import type { Host } from '../../src/host.js';
import { partial } from '../support/partial.js';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { ENVELOPE_BYTES, decodeEnvelope, toPackets } from '../../src/plugins/native/codec.js';
import { createMemoryBudget } from '../../src/http/request-body.js';
import type { NativeConfig } from '../../src/plugins/native/plugin.js';
import { createLogger } from '../../src/observe/logger.js';
import { createTcpServer } from '../../src/plugins/native/tcp.js';
import { createUdpListener } from '../../src/plugins/native/udp.js';
import { TimeSlicer } from '../../src/time-slicer.js';
import { testContext } from '../support/context.js';
import { exchangeTcp } from '../support/native-client.js';
import { createUncached } from '../support/native-messages.js';
import { bytesOf, native as recorded } from '../support/native-recordings.js';
import { randomFrom } from '../support/random.js';
import { below, mutate, pick } from './mutate.js';

const DATAGRAMS = Number(process.env['FUZZ_DATAGRAMS'] ?? 10_000);
const STREAMS = Math.ceil(DATAGRAMS / 10);
const SEED = Number(process.env['FUZZ_SEED'] ?? 1);
const MAX_AMPLIFICATION = 64;
vi.setConfig({ testTimeout: 180_000 + 10 * DATAGRAMS });

const context = testContext({ log: createLogger({ level: 'silent' }) });
vi.spyOn(context.log, 'error').mockImplementation((fields: unknown) => {
  throw (fields as { err: unknown }).err;
});

/** Returns a short record for most handles, and a record of 100,000 bytes for one handle length in seven. */
const native = createUncached(context, ({ handle }) => ({
  responseCode: 1,
  body: {
    kind: 'record',
    handle,
    values: [
      {
        index: 1,
        type: 'URL',
        ttl: 86_400,
        data: { format: 'string', value: 'x'.repeat(handle.length % 7 === 0 ? 100_000 : 50) },
      },
    ],
  },
  result: 'hit',
}));

const slicer = new TimeSlicer({ monotonic: () => performance.now(), nextTurn: setImmediate });

const requestsOf = (transport: 'tcp' | 'udp'): Buffer[] =>
  recorded.exchanges
    .filter((one) => one.transport === transport)
    .flatMap(({ request }) => request.map(bytesOf));

describe('fuzzed native listeners', () => {
  test(`bound the amplification of ${DATAGRAMS} mutated datagrams`, async () => {
    const random = randomFrom(SEED);
    const limited = vi.fn<(labels: object) => void>();
    vi.spyOn(context.metrics, 'counterOf').mockReturnValue(limited);
    const config = {
      server: { host: '127.0.0.1', reusePort: false },
      native: { udp: { bytesPerSecond: 0 } },
    };
    const host = partial<Host>({ ...context, slicer });
    const { socket, drain } = createUdpListener(partial<NativeConfig>(config), host, native, () => false);
    const listening = once(socket, 'listening');
    socket.bind(0, '127.0.0.1');
    await listening;
    let sent = 0;
    let answered = 0;
    vi.spyOn(socket, 'send').mockImplementation((packet: unknown) => {
      sent += (packet as Buffer).length;
    });
    const long = Buffer.concat([requestsOf('tcp')[0]!, Buffer.alloc(2000)]);
    const parts = toPackets(decodeEnvelope(long), long.subarray(ENVELOPE_BYTES));
    const requests = [...requestsOf('udp'), ...parts];
    /** Bytes by request ID. The response to fragments follows the packet that completes the request. */
    const ofParts = new Map<number, { received: number; sent: number }>();
    for (let at = 0; at < DATAGRAMS; at++) {
      const packet = mutate(random, pick(random, requests), 3);
      sent = 0;
      socket.emit('message', packet, { address: '192.0.2.1', port: 1, family: 'IPv4', size: packet.length });
      if (sent > 0) answered++;
      const { requestId, isTruncated } = decodeEnvelope(
        Buffer.concat([packet, Buffer.alloc(ENVELOPE_BYTES)]),
      );
      const before = (isTruncated && ofParts.get(requestId)) || { received: 0, sent: 0 };
      const all = { received: before.received + packet.length, sent: before.sent + sent };
      if (isTruncated) ofParts.set(requestId, all);
      if (all.sent > MAX_AMPLIFICATION * all.received) throw new Error(`seed ${SEED}, datagram ${at}`);
    }
    expect(answered).toBeGreaterThan(DATAGRAMS / 4);
    expect(limited).toHaveBeenCalledWith({ reason: 'size' });
    await drain(0);
  });

  test(`answer and end ${STREAMS} mutated streams`, async () => {
    const random = randomFrom(SEED);
    const settings = {
      maxConnections: 100,
      maxConnectionsPerNetwork: 0,
      idleTimeoutMs: 60_000,
      requestTimeoutMs: 60_000,
    };
    const host = {
      ...context,
      slicer,
      isTrustedProxy: () => false,
      unsent: createMemoryBudget(1_000_000),
      bodies: createMemoryBudget(1_000_000),
    };
    const server = createTcpServer(partial(settings), partial<Host>(host), native, () => undefined);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => {
      server.close();
    });
    const { port } = server.address() as AddressInfo;
    const requests = requestsOf('tcp');
    for (let at = 0; at < STREAMS; at++) {
      const bytes = mutate(random, pick(random, requests), 3);
      const cut = below(random, bytes.length + 1);
      const answer = await exchangeTcp(port, [bytes.subarray(0, cut), bytes.subarray(cut)], {
        isEnded: true,
      });
      if (answer.length !== ENVELOPE_BYTES + decodeEnvelope(answer).length) {
        throw new Error(`seed ${SEED}, stream ${at}: ${bytes.toString('hex')}`);
      }
    }
  });
});
