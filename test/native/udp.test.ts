// The UDP listener: packets in both directions, with bounded amplification.
import { describe, expect, it } from 'vitest';
import { ENVELOPE_BYTES, decodeEnvelope, toPackets } from '../../src/plugins/native/codec.js';
import { gate } from '../support/gate.js';
import { askTcp, exchangeUdp, nextMessage, openUdp, sendUdp } from '../support/native-client.js';
import { codeOf, indexesIn, nativeRequest, readResponse } from '../support/native-messages.js';
import { useNock } from '../support/nock.js';
import { type Proxy, STARTED_AT, startProxy } from '../support/proxy.js';
import { HANDLE, PATH, mockUpstream, recordOf, urlValue } from '../support/upstream.js';
import '../support/real-sockets.js';

useNock();

const ON = { NATIVE_UDP_PORT: '0' };
const REQUEST = nativeRequest(HANDLE);

const only = ([packet, ...rest]: Buffer[]) => {
  expect(rest).toEqual([]);
  return readResponse(packet!);
};

async function limitedOf(proxy: Proxy): Promise<Record<string, number>> {
  const metrics = await proxy.metrics();
  const limited = metrics.find(({ name }) => name === 'handle_proxy_native_udp_limited_total');
  return Object.fromEntries(limited!.values.map(({ labels, value }) => [String(labels['reason']), value]));
}

/** A request whose type filter makes it span several packets. */
const LONG = nativeRequest(HANDLE, { types: ['x'.repeat(600), 'URL'], requestId: 7 });
const LONG_PACKETS = toPackets(decodeEnvelope(LONG), LONG.subarray(ENVELOPE_BYTES));

describe('UDP request', () => {
  it('fills the cache that all interfaces share', async () => {
    const upstream = mockUpstream();
    const { udpPort, ask } = await startProxy(ON);
    expect(indexesIn(only(await exchangeUdp(udpPort, [REQUEST])))).toEqual([1, 2, 3]);
    await ask(PATH);
    expect(upstream.asked).toBe(1);
  });

  it('is reassembled from packets in any order, with duplicates', async () => {
    mockUpstream();
    const { udpPort } = await startProxy(ON);
    const [first, second] = LONG_PACKETS as [Buffer, Buffer];
    expect(indexesIn(only(await exchangeUdp(udpPort, [second, second, first])))).toEqual([1]);
  });

  it('is dropped after five seconds if incomplete', async () => {
    mockUpstream();
    const { udpPort, pass } = await startProxy(ON);
    const [first, second] = LONG_PACKETS as [Buffer, Buffer];
    const socket = await openUdp();
    sendUdp(socket, udpPort, first);
    // On loopback the datagrams of one socket arrive in order.
    sendUdp(socket, udpPort, REQUEST);
    await nextMessage(socket);
    pass(5001);
    const next = nextMessage(socket);
    sendUdp(socket, udpPort, second);
    sendUdp(socket, udpPort, REQUEST);
    expect(only(await next).envelope.requestId).toBe(1);
  });

  it('is rejected at its first or last packet if it claims 65,536 packets', async () => {
    mockUpstream();
    const { udpPort } = await startProxy(ON);
    const [first] = LONG_PACKETS as [Buffer, Buffer];
    const packet = Buffer.from(first);
    packet.writeInt32BE(65_536 * 492, 16);
    for (const sequence of [0, 65_535]) {
      packet.writeInt32BE(sequence, 12);
      expect(codeOf(only(await exchangeUdp(udpPort, [packet])))).toBe(2);
    }
  });

  it('is ignored if shorter than 8 bytes', async () => {
    mockUpstream();
    const { udpPort } = await startProxy(ON);
    const socket = await openUdp();
    const next = nextMessage(socket);
    for (const short of ['', 'x', 'x'.repeat(7)]) sendUdp(socket, udpPort, Buffer.from(short));
    sendUdp(socket, udpPort, REQUEST);
    expect(codeOf(only(await next))).toBe(1);
  });

  it('gets its response before the socket closes', async () => {
    const { opened, open } = gate();
    mockUpstream({ ...recordOf([urlValue('https://example.org/')]), after: opened });
    const { udpPort, app, drainNative } = await startProxy(ON);
    const socket = await openUdp();
    const answer = nextMessage(socket);
    sendUdp(socket, udpPort, REQUEST);
    await expect.poll(async () => (await app.operations.stats()).upstream.inFlight).toBe(1);
    const drained = drainNative(10_000);
    open();
    expect(codeOf(only(await answer))).toBe(1);
    await drained;
  });
});

describe('UDP response size', () => {
  const recordWith = (bytes: number) => recordOf([urlValue(`https://example.org/${'x'.repeat(bytes)}`)]);
  const sizeOf = (packets: Buffer[]): number => packets.reduce((sum, { length }) => sum + length, 0);

  const longest = (packets: Buffer[]): number => sizeOf(packets) / REQUEST.length;

  it('is limited to one packet of 512 bytes for an unverified sender, with code 2 for a longer response', async () => {
    const upstream = mockUpstream(recordWith(100));
    const proxy = await startProxy({ ...ON, CACHE_FOUND_MAX_TTL: '0s', CACHE_FOUND_MIN_TTL: '0s' });
    const extra = 512 - sizeOf(await exchangeUdp(proxy.udpPort, [REQUEST]));
    upstream.answers(recordWith(100 + extra));
    const packets = await exchangeUdp(proxy.udpPort, [REQUEST]);
    expect(sizeOf(packets)).toBe(512);
    // SECURITY.md states this amplification factor.
    expect(longest(packets)).toBeLessThanOrEqual(512 / 72);
    upstream.answers(recordWith(100 + extra + 1));
    const refused = only(await exchangeUdp(proxy.udpPort, [REQUEST]));
    expect([codeOf(refused), refused.envelope.requestId]).toEqual([2, 1]);
    expect(await limitedOf(proxy)).toMatchObject({ size: 1 });
  });

  it.each([1000, 100_000])(
    'is not increased by a long request in several packets (record of %i bytes)',
    async (bytes) => {
      mockUpstream(recordWith(bytes));
      const { udpPort } = await startProxy(ON);
      expect(codeOf(only(await exchangeUdp(udpPort, LONG_PACKETS)))).toBe(2);
    },
  );

  it('is unlimited for an hour for a sender verified over TCP', async () => {
    mockUpstream(recordWith(4000));
    const proxy = await startProxy({ ...ON, NATIVE_TCP_PORT: '0', NATIVE_UDP_BYTES_PER_SECOND: '0B' });
    const ask = () => exchangeUdp(proxy.udpPort, [REQUEST]);
    expect(codeOf(only(await ask()))).toBe(2);
    expect(codeOf(await askTcp(proxy.tcpPort, HANDLE))).toBe(1);
    expect(sizeOf(await ask())).toBeGreaterThan(4000);
    // The second response is prepared.
    expect(sizeOf(await ask())).toBeGreaterThan(4000);
    proxy.pass(60 * 60 * 1000 + 1);
    expect(codeOf(only(await ask()))).toBe(2);
  });

  it('never exceeds the length that clients accept, even over TCP', async () => {
    mockUpstream(recordWith(262_144));
    const { tcpPort } = await startProxy({ ...ON, NATIVE_TCP_PORT: '0' });
    expect(codeOf(await askTcp(tcpPort, HANDLE))).toBe(2);
    expect(codeOf(await askTcp(tcpPort, HANDLE, { indexes: [7] }))).toBe(200);
  });

  it('is limited by bytesPerSecond, beyond which every second request from a network gets code 2', async () => {
    const upstream = mockUpstream();
    let time = STARTED_AT;
    const now = (): number => time;
    const env = { ...ON, NATIVE_UDP_BYTES_PER_SECOND: '1KiB' };
    const proxy = await startProxy(env, { clock: { now, wall: now, monotonic: now } });
    const length = sizeOf(await exchangeUdp(proxy.udpPort, [REQUEST]));
    time += 1000;
    const answered = Math.ceil(1024 / length);
    const socket = await openUdp();
    const codes: number[] = [];
    const done = new Promise<void>((resolve) => {
      socket.on('message', (packet) => {
        if (codes.push(codeOf(readResponse(packet))) === answered + 2) resolve();
      });
    });
    for (let at = 0; at < answered + 3; at++) sendUdp(socket, proxy.udpPort, REQUEST);
    await done;
    expect(codes).toEqual([...Array<number>(answered).fill(1), 2, 2]);
    expect(await limitedOf(proxy)).toMatchObject({ rate: 3 });
    time += 1000;
    expect(codeOf(only(await exchangeUdp(proxy.udpPort, [REQUEST])))).toBe(1);
    expect(upstream.asked).toBe(1);
  });
});
