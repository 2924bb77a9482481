// Prepared native responses: as current as their entry, on every transport, and logged like other responses.
import { Writable } from 'node:stream';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { ByteWriter } from '../../src/handle/bytes.js';
import { FULL_PACKET_BYTES, OP_FLAG } from '../../src/plugins/native/codec.js';
import type { Transport } from '../../src/plugins/native/reply.js';
import { createLogger } from '../../src/observe/logger.js';
import { fixed } from '../support/fixed.js';
import { exchangeTcp, exchangeUdp } from '../support/native-client.js';
import {
  type NativeQuestion,
  type NativeResponse,
  PUBLIC,
  codeOf,
  nativeRequest,
  readResponse,
  textIn,
} from '../support/native-messages.js';
import { useNock } from '../support/nock.js';
import { startOtlpReceiver } from '../support/otlp-receiver.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { HANDLE, PATH, mockUpstream, notFound, recordOf, urlValue } from '../support/upstream.js';
import { jsonAnswer, mockWrites } from '../support/writes.js';
import '../support/real-sockets.js';

useNock();

const ON = { NATIVE_TCP_PORT: '0', NATIVE_UDP_PORT: '0' };
const HOUR = 3_600_000;
type Prepared = Exclude<Transport, 'tunnel'>;

const ASK: Record<Prepared, (proxy: Proxy, request: Buffer) => Promise<Buffer>> = {
  tcp: ({ tcpPort }, request) => exchangeTcp(tcpPort, [request]),
  udp: async ({ udpPort }, request) => Buffer.concat(await exchangeUdp(udpPort, [request])),
};

const urlIn = ({ body }: NativeResponse): unknown =>
  body.kind === 'record' ? (body.values[0]?.data as { value: unknown }).value : undefined;

const TRANSPORTS: readonly Prepared[] = ['tcp', 'udp'];

async function limitedBySize(proxy: Proxy): Promise<number | undefined> {
  const limited = (await proxy.metrics()).find(
    ({ name }) => name === 'handle_proxy_native_udp_limited_total',
  );
  return limited?.values.find(({ labels }) => labels['reason'] === 'size')?.value;
}

describe.each(TRANSPORTS)('prepared native response on %s', (transport) => {
  const send = async (proxy: Proxy, question: NativeQuestion = {}): Promise<NativeResponse> =>
    readResponse(await ASK[transport](proxy, nativeRequest(HANDLE, question)));
  const isPrepared = ({ app }: Proxy, question: NativeQuestion = {}): boolean =>
    app.native.answerPrepared(nativeRequest(HANDLE, question), transport) !== undefined;
  /** Sends two requests: a miss, then a hit, which prepares the response. */
  async function askTwice(proxy: Proxy, question: NativeQuestion = {}): Promise<void> {
    await send(proxy, question);
    await send(proxy, question);
  }

  it('is used from the second hit on, with the request id of each request', async () => {
    const upstream = mockUpstream();
    const proxy = await startProxy(ON);
    await send(proxy);
    expect(isPrepared(proxy)).toBe(false);
    await send(proxy);
    expect(isPrepared(proxy)).toBe(true);
    expect((await send(proxy, { requestId: -77 })).envelope.requestId).toBe(-77);
    expect(upstream.asked).toBe(1);
    for (const other of TRANSPORTS.filter((each) => each !== transport))
      expect(proxy.app.native.answerPrepared(nativeRequest(HANDLE), other)).toBeUndefined();
  });

  it('is replaced after a write through the proxy', async () => {
    const upstream = mockUpstream(recordOf([urlValue('https://example.org/old')]));
    mockWrites(jsonAnswer(200, { responseCode: 1 }));
    const proxy = await startProxy(ON);
    await askTwice(proxy);
    upstream.answers(recordOf([urlValue('https://example.org/new')]));
    expect(urlIn(await send(proxy))).toBe('https://example.org/old');
    await proxy.ask(PATH, { method: 'PUT', body: '[]' });
    expect(isPrepared(proxy)).toBe(false);
    expect(urlIn(await send(proxy))).toBe('https://example.org/new');
  });

  it('is replaced after a purge, and after an authoritative read over a different interface', async () => {
    const upstream = mockUpstream(notFound());
    const proxy = await startProxy(ON);
    await askTwice(proxy);
    upstream.answers(recordOf());
    await proxy.ask(`${PATH}?auth`);
    expect(codeOf(await send(proxy))).toBe(1);
    expect(isPrepared(proxy)).toBe(true);
    upstream.answers(notFound());
    await proxy.app.operations.purge({ handles: [HANDLE], isSoft: false });
    expect(codeOf(await send(proxy))).toBe(100);
  });

  it('is not used after expiry, and a stale entry is reported as stale', async () => {
    const upstream = mockUpstream(recordOf([urlValue('https://example.org/old')]));
    const proxy = await startProxy(ON);
    await askTwice(proxy);
    proxy.pass(HOUR + 1);
    expect(isPrepared(proxy)).toBe(false);
    upstream.answers({ status: 500, body: '' });
    expect(urlIn(await send(proxy))).toBe('https://example.org/old');
    expect(isPrepared(proxy)).toBe(false);
    proxy.pass(6000);
    upstream.answers(recordOf([urlValue('https://example.org/new')]));
    expect(urlIn(await send(proxy))).toBe('https://example.org/new');
  });

  it('triggers refresh ahead near the end of the TTL without delaying the client', async () => {
    const upstream = mockUpstream();
    const proxy = await startProxy(ON);
    for (let times = 0; times < 5; times++) await send(proxy);
    upstream.answers(recordOf([urlValue('https://example.org/ahead')]));
    proxy.pass(0.9 * HOUR + 1);
    await send(proxy);
    await expect.poll(async () => urlIn(await send(proxy))).toBe('https://example.org/ahead');
    expect(upstream.asked).toBe(2);
  });

  it('is used near the end of the TTL when no refresh is due', async () => {
    mockUpstream();
    const proxy = await startProxy({ ...ON, ...fixed({ cache: { refreshAhead: { minHits: 0 } } }) });
    await askTwice(proxy);
    proxy.pass(0.9 * HOUR + 1);
    await send(proxy);
    expect(isPrepared(proxy)).toBe(true);
  });

  it.each([
    ['AUTH', { flags: PUBLIC | OP_FLAG.authoritative }],
    ['a digest of the request', { flags: PUBLIC | OP_FLAG.returnDigest }],
    ['a signature', { flags: PUBLIC | OP_FLAG.certify }],
    ['private values', { flags: OP_FLAG.recursive, indexes: [1] }],
    ['a session', { sessionId: 5 }],
    ['encryption', { isEncrypted: true }],
  ])('is never used for a request with %s', async (_what, question) => {
    mockUpstream();
    const proxy = await startProxy(ON);
    await askTwice(proxy, question);
    await askTwice(proxy);
    await send(proxy);
    expect([isPrepared(proxy), isPrepared(proxy, question)]).toEqual([true, false]);
  });

  it('repeats the refusal of a record that is too long, while its entry is in memory', async () => {
    const upstream = mockUpstream(recordOf([urlValue(`https://example.org/${'x'.repeat(300_000)}`)]));
    const proxy = await startProxy(ON);
    await askTwice(proxy);
    const writes = vi.spyOn(ByteWriter.prototype, 'sizedText');
    onTestFinished(() => {
      writes.mockRestore();
    });
    const refused = await send(proxy, { requestId: 9 });
    expect([codeOf(refused), refused.envelope.requestId]).toEqual([2, 9]);
    expect(textIn(refused)).toMatch(transport === 'udp' ? /use TCP$/ : /^The record is too long/);
    expect(writes).not.toHaveBeenCalled();
    expect(await limitedBySize(proxy)).toBe(transport === 'udp' ? 3 : 0);
    upstream.answers(recordOf());
    await proxy.app.operations.purge({ handles: [HANDLE], isSoft: false });
    expect(codeOf(await send(proxy))).toBe(1);
  });

  it('is not used without room for a response', async () => {
    mockUpstream();
    const proxy = await startProxy({ ...ON, ...fixed({ http: { responseCache: { maxEntries: 0 } } }) });
    await askTwice(proxy);
    expect(isPrepared(proxy)).toBe(false);
  });

  it('is counted, logged and traced like an unprepared hit', async () => {
    mockUpstream();
    const lines: string[] = [];
    const destination = new Writable({
      write(chunk: Buffer, _encoding, done) {
        lines.push(...chunk.toString().trim().split('\n'));
        done();
      },
    });
    const collector = await startOtlpReceiver();
    const logger = createLogger({ level: 'info', destination });
    const proxy = await startProxy(
      { ...ON, TRACING_ENDPOINT: collector.endpoint, LOG_REQUESTS: 'all' },
      { logger },
    );
    await askTwice(proxy);
    for (let times = 0; times < 3; times++) await send(proxy);
    const family = `native-${transport}`;
    const { byInterface, byResult } = (await proxy.app.operations.stats()).requests;
    expect([byInterface[family], byResult]).toEqual([5, { miss: 1, hit: 4 }]);
    const counted = JSON.stringify(await proxy.metrics());
    expect(counted).toContain(`{"value":4,"labels":{"interface":"${family}","result":"hit","status":"1"}}`);
    await proxy.close();
    const logged = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    const requests = logged.filter(({ msg }) => msg === 'request');
    expect(requests).toHaveLength(5);
    const changing = { time: expect.any(String) as string, ms: expect.any(Number) as number };
    expect(requests[4]).toEqual({ ...withoutId(requests[1]!), ...changing });
    const spans = collector.spans().filter(({ kind }) => kind === 2);
    expect(spans.map(({ name }) => name)).toEqual(Array(5).fill(family));
    const [before, after] = [spans[1]!, spans[4]!].map(({ attributes }) => attributes);
    expect(after).toMatchObject({ ...before, 'handle_proxy.result': 'hit', 'handle_proxy.handle': HANDLE });
  });
});

describe('prepared response on udp to a request for a record that is longer than a packet', () => {
  it('is complete for clients proved over TCP, and a refusal for others', async () => {
    mockUpstream(recordOf([urlValue(`https://example.org/${'x'.repeat(1000)}`)]));
    const proxy = await startProxy(ON);
    const request = nativeRequest(HANDLE);
    const ask = async (): Promise<number> => {
      const packets = await exchangeUdp(proxy.udpPort, [request]);
      return packets.length > 1 ? packets.length : readResponse(packets[0]!).header.responseCode;
    };
    const TOO_LARGE = 2;
    expect([await ask(), await ask(), await ask()]).toEqual([TOO_LARGE, TOO_LARGE, TOO_LARGE]);
    await exchangeTcp(proxy.tcpPort, [request]);
    expect([await ask(), await ask()]).toEqual([3, 3]);
    const lengths = [FULL_PACKET_BYTES, Infinity].map(
      (maxBytes) => proxy.app.native.answerPrepared(request, 'udp', maxBytes)?.length,
    );
    expect(lengths[0]).toBeLessThan(FULL_PACKET_BYTES);
    expect(lengths[1]).toBeGreaterThan(2 * FULL_PACKET_BYTES);
  });
});

/** Removes the request and trace ids, which the log line of a prepared response lacks. */
const withoutId = (line: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(line).filter(([name]) => name !== 'requestId' && name !== 'traceId'));
