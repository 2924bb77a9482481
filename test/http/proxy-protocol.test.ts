// Connections with a PROXY header: the client that counts, connections that are closed, and bounds.
import type { Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import nock from 'nock';
import { describe, expect, it, vi } from 'vitest';
import { serve } from '../../src/app/serve.js';
import { testContext } from '../support/context.js';
import { fixed } from '../support/fixed.js';
import { configFrom, problemsFrom } from '../support/load-config.js';
import { useNock } from '../support/nock.js';
import { binaryHeader, textHeader } from '../support/proxy-header.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { exchange, exchangeOn, openSocket, pipelineOn } from '../support/raw-socket.js';
import { PATH, UPSTREAM_URL, mockUpstream, recordOf } from '../support/upstream.js';

useNock();

const CLIENT = '203.0.113.7';
const GET = `GET ${PATH} HTTP/1.1\r\nHost: x\r\n\r\n`;
const LAST = GET.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n');
const V1 = textHeader(CLIENT);
const V6 = 'PROXY TCP6 2001:DB8:0::7 ::1 4711 80\r\n';
const v2 = (command: number, rest = ''): Buffer =>
  binaryHeader(command, 0x11, Buffer.from(`cb007107c000020112670050${rest}`, 'hex'));
/** A field that the proxy does not know, such as the name of the host (§2.2). */
const FIELD = '02000b6578616d706c652e6f7267';

const refusesClient = {
  TRAFFIC_RULES: JSON.stringify([
    { name: 'tested', match: { network: [CLIENT, '2001:db8::7'] }, answer: 403 },
  ]),
};

const start = (
  env: Record<string, string> = {},
  deps: Parameters<typeof startProxy>[1] = {},
): Promise<Proxy> => startProxy({ PROXY_PROTOCOL_FROM: '127.0.0.1', ...env }, deps);

const statusOf = async (proxy: Proxy, bytes: string | Buffer): Promise<number[]> =>
  (await exchange(proxy.url, bytes)).answers.map(({ status }) => status);

const both = (header: string | Buffer, request = LAST): Buffer =>
  Buffer.concat([Buffer.from(header), Buffer.from(request)]);

async function rejections(proxy: Proxy): Promise<Record<string, number>> {
  const { values } = await proxy.metric('handle_proxy_proxy_protocol_rejections_total');
  return Object.fromEntries(values.map(({ labels, value }) => [String(labels['reason']), value]));
}
const NONE = { untrusted: 0, invalid: 0, timeout: 0, limit: 0 };

/** Waits until the proxy has closed the connection; returns what it has sent. */
async function closed(socket: Socket): Promise<string> {
  let text = '';
  socket.setEncoding('latin1').on('data', (part: string) => (text += part));
  // Closed with unread bytes, a connection is reset.
  if (!socket.closed) await new Promise((resolve) => socket.once('close', resolve));
  return text;
}

describe('the client of a connection', () => {
  it.each<[string, string | Buffer, number]>([
    ['in version 1', V1, 403],
    ['in version 1 over IPv6, in any spelling', V6, 403],
    ['in version 2', v2(0x21), 403],
    ['in version 2 with more fields', v2(0x21, FIELD), 403],
    ['not in LOCAL', v2(0x20, FIELD), 200],
    ['not in UNKNOWN', `PROXY UNKNOWN ${CLIENT} ${CLIENT} 1 2\r\n`, 200],
  ])('is the address in its header: %s', async (_what, header, status) => {
    mockUpstream();
    const proxy = await start(refusesClient);
    expect(await statusOf(proxy, both(header))).toEqual([status]);
    expect(await rejections(proxy)).toEqual(NONE);
  });

  it('is the peer for LOCAL, and what a client sends further on is no header', async () => {
    mockUpstream();
    const ours = { TRAFFIC_RULES: refusesClient.TRAFFIC_RULES.replace(CLIENT, '127.0.0.1') };
    expect(await statusOf(await start(ours), both(v2(0x20)))).toEqual([403]);
    const [status = 0] = await statusOf(await start(), both(V1, textHeader('192.0.2.9') + LAST));
    expect(status).toBeGreaterThanOrEqual(400);
  });

  it('is sent to the server, counted by limits, and logged', async () => {
    mockUpstream();
    nock(UPSTREAM_URL, { reqheaders: { 'x-forwarded-for': CLIENT } })
      .put(PATH)
      .reply(200, recordOf([]).body as object);
    const { log, lines } = testContext();
    const rule = { name: 'tested', limit: { perMinute: 2, by: 'address' }, log: true };
    const proxy = await start({ TRAFFIC_RULES: JSON.stringify([rule]), LOG_LEVEL: 'info' }, { logger: log });
    const put = `PUT ${PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n[]`;
    const socket = await openSocket(proxy.url);
    const statuses = [
      await exchangeOn(socket, V1 + put),
      await exchangeOn(socket, GET),
      await exchangeOn(socket, GET),
    ];
    expect(statuses.map(({ status }) => status)).toEqual([200, 200, 429]);
    expect(await statusOf(proxy, both(textHeader('198.51.100.1')))).toEqual([200]);
    const matched = lines.filter(({ msg }) => msg === 'traffic rule matched');
    expect(matched.map(({ address }) => address)).toEqual([CLIENT, CLIENT, CLIENT, '198.51.100.1']);
  });

  it('is in X-Forwarded-For if the header names a trusted proxy, and only then', async () => {
    mockUpstream();
    const claim = LAST.replace('\r\n\r\n', `\r\nX-Forwarded-For: ${CLIENT}\r\n\r\n`);
    const proxy = await start({ ...refusesClient, HTTP_TRUSTED_PROXIES: '10.0.0.0/8' });
    expect(await statusOf(proxy, both(textHeader('10.1.2.3'), claim))).toEqual([403]);
    expect(await statusOf(proxy, both(textHeader('192.0.2.3'), claim))).toEqual([200]);
  });
});

describe('requests after a header', () => {
  it.each([
    ['version 1', Buffer.from(V1)],
    ['version 2', v2(0x21, FIELD)],
  ])('are answered whatever the packets: %s', async (_what, header) => {
    mockUpstream();
    const proxy = await start(refusesClient);
    const bytes = both(header);
    for (const at of [
      1,
      5,
      12,
      16,
      17,
      header.length - 1,
      header.length,
      header.length + 1,
      bytes.length - 1,
    ]) {
      const socket = await openSocket(proxy.url);
      const received = closed(socket.setNoDelay());
      socket.write(bytes.subarray(0, at));
      await turn();
      await turn();
      socket.write(bytes.subarray(at));
      expect(await received).toMatch(/^HTTP\/1\.1 403 /);
    }
    const socket = await openSocket(proxy.url);
    const received = closed(socket.setNoDelay());
    for (const byte of bytes) {
      socket.write(Buffer.from([byte]));
      await turn();
    }
    expect(await received).toMatch(/^HTTP\/1\.1 403 /);
  });

  it('are answered on a kept connection, pipelined, and with a long body', async () => {
    mockUpstream();
    nock(UPSTREAM_URL)
      .put(PATH)
      .reply(200, recordOf([]).body as object);
    const proxy = await start();
    const socket = await openSocket(proxy.url);
    const send = pipelineOn(socket);
    const body = JSON.stringify('x'.repeat(500_000));
    const put = `PUT ${PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    const answers = await Promise.all([send(V1 + GET), send(GET), send(put), send(GET)]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect((await send(GET)).status).toBe(200);
  });

  it('are answered if the client closes its side with them', async () => {
    mockUpstream();
    const proxy = await start();
    for (const rest of [GET, GET + GET]) {
      const socket = await openSocket(proxy.url);
      const received = closed(socket);
      socket.end(V1 + rest);
      expect((await received).match(/HTTP\/1\.1 200/g)).toHaveLength(rest.length / GET.length);
    }
  });
});

describe('a connection without a valid header', () => {
  it.each<[string, string | Buffer]>([
    ['a request', GET],
    ['TLS', Buffer.from('16030100c8010000c40303', 'hex')],
    ['a wrong address', both('PROXY TCP4 203.0.113.777 192.0.2.1 1 2\r\n')],
    ['no end', `PROXY TCP4 ${'1'.repeat(100)}`],
    ['a length above the bound', both(binaryHeader(0x21, 0x11, Buffer.alloc(4000)))],
    ['a later version', both(binaryHeader(0x31, 0x11, Buffer.alloc(12)))],
  ])('is closed without a response: %s', async (_what, bytes) => {
    const proxy = await start();
    expect(await exchange(proxy.url, bytes)).toEqual({ answers: [], closed: true });
    expect(await rejections(proxy)).toEqual({ ...NONE, invalid: 1 });
  });

  it('is closed without a response from any other address, with a header too', async () => {
    const { log, lines } = testContext();
    const proxy = await start({}, { logger: log });
    for (const bytes of [GET, V1 + GET]) {
      const socket = await openSocket(proxy.url, '127.0.0.2');
      socket.write(bytes);
      expect(await closed(socket)).toBe('');
    }
    expect(await rejections(proxy)).toEqual({ ...NONE, untrusted: 2 });
    expect(lines.filter(({ level }) => level === 'warn')).toMatchObject([
      {
        ...{
          msg: 'connections without a PROXY header closed',
          reason: 'untrusted',
          peer: '127.0.0.2',
          closed: 1,
        },
        remedy: expect.stringContaining('proxyProtocol.from') as string,
      },
    ]);
  });

  it('is logged once a minute, with the number since the last line', async () => {
    const { log, lines } = testContext();
    const proxy = await start({}, { logger: log });
    for (let times = 0; times < 5; times++) await exchange(proxy.url, GET);
    proxy.pass(60_000);
    await exchange(proxy.url, GET);
    expect(lines.filter(({ reason }) => reason === 'invalid').map(({ closed: count }) => count)).toEqual([
      1, 5,
    ]);
  });

  it('is closed when its header takes too long, however often bytes arrive', async () => {
    const proxy = await start(fixed({ proxyProtocol: { headerTimeoutMs: 100 } }));
    const socket = await openSocket(proxy.url);
    const dripping = setInterval(() => socket.write('1'), 20);
    socket.write('PROXY TCP4 ');
    expect(await closed(socket)).toBe('');
    clearInterval(dripping);
    expect(await rejections(proxy)).toEqual({ ...NONE, timeout: 1 });
  });

  it('is not counted if its client closes it, as the health check of a balancer does', async () => {
    const proxy = await start();
    for (const bytes of ['', V1.slice(0, 20)]) {
      const socket = await openSocket(proxy.url);
      socket.end(bytes);
      expect(await closed(socket)).toBe('');
    }
    const reset = await openSocket(proxy.url);
    reset.resetAndDestroy();
    await expect.poll(proxy.connections).toBe(0);
    expect(await rejections(proxy)).toEqual(NONE);
  });
});

describe('bounds of connections with a header', () => {
  it('server.maxConnectionsPerNetwork counts the network in the header', async () => {
    mockUpstream();
    const proxy = await start({ SERVER_MAX_CONNECTIONS_PER_NETWORK: '1' });
    const [one, other, same] = [
      await openSocket(proxy.url),
      await openSocket(proxy.url),
      await openSocket(proxy.url),
    ];
    expect((await exchangeOn(one, V1 + GET)).status).toBe(200);
    expect((await exchangeOn(other, textHeader('198.51.100.1') + GET)).status).toBe(200);
    same.write(textHeader('203.0.113.99') + GET);
    expect(await closed(same)).toBe('');
    one.destroy();
    await expect.poll(proxy.connections).toBe(1);
    expect((await exchangeOn(await openSocket(proxy.url), V1 + GET)).status).toBe(200);
  });

  it('server.maxConnections closes a connection with a header and no request', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
    try {
      mockUpstream();
      const proxy = await start({ SERVER_MAX_CONNECTIONS: '1' });
      const idle = await openSocket(proxy.url);
      idle.write(V1);
      await expect.poll(() => idle.bytesWritten).toBe(V1.length);
      // A connection counts once its header has been read.
      for (let times = 0; times < 5; times++) await turn();
      vi.advanceTimersByTime(3000);
      expect((await exchangeOn(await openSocket(proxy.url), V1 + GET)).status).toBe(200);
      expect(await closed(idle)).toBe('');
    } finally {
      vi.useRealTimers();
    }
  });

  it('server.maxConnections closes a connection with a header and no request before a used connection', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
    try {
      mockUpstream();
      const proxy = await start({ SERVER_MAX_CONNECTIONS: '2' });
      const [used, other] = [await openSocket(proxy.url), await openSocket(proxy.url)];
      for (const socket of [used, other]) expect((await exchangeOn(socket, V1 + GET)).status).toBe(200);
      // Times of use are sampled near the bound.
      vi.advanceTimersByTime(1000);
      other.destroy();
      await expect.poll(proxy.connections).toBe(1);
      vi.advanceTimersByTime(60_000);
      const silent = await openSocket(proxy.url);
      silent.write(V1);
      await expect.poll(() => silent.bytesWritten).toBe(V1.length);
      // A connection counts once its header has been read.
      for (let times = 0; times < 5; times++) await turn();
      vi.advanceTimersByTime(3000);
      expect((await exchangeOn(await openSocket(proxy.url), V1 + GET)).status).toBe(200);
      expect(await closed(silent)).toBe('');
      expect((await exchangeOn(used, GET)).status).toBe(200);
    } finally {
      vi.useRealTimers();
    }
  });

  it('at most some wait for their header, and those that have it are not among them', async () => {
    mockUpstream();
    const proxy = await start(fixed({ proxyProtocol: { maxWaiting: 2 } }));
    const served = await openSocket(proxy.url);
    expect((await exchangeOn(served, V1 + GET)).status).toBe(200);
    const waiting = [await openSocket(proxy.url), await openSocket(proxy.url)];
    await expect.poll(proxy.connections).toBe(3);
    expect(await closed(await openSocket(proxy.url))).toBe('');
    expect(await rejections(proxy)).toEqual({ ...NONE, limit: 1 });
    for (const socket of waiting) expect((await exchangeOn(socket, V1 + GET)).status).toBe(200);
    expect((await exchangeOn(served, GET)).status).toBe(200);
  });

  it('a stop closes connections before their header', async () => {
    const env = { UPSTREAM_URL, HOST: '127.0.0.1', PORT: '0', ADMIN_PORT: '0', LOG_LEVEL: 'silent' };
    const waitsLong = fixed({ proxyProtocol: { headerTimeoutMs: 600_000 } });
    const service = await serve(
      configFrom({ env: { ...env, PROXY_PROTOCOL_FROM: 'loopback', ...waitsLong } }),
    );
    const socket = await openSocket(service.url);
    socket.write('PROXY ');
    const received = closed(socket);
    await service.stop(200);
    expect(await received).toBe('');
  });
});

describe('proxyProtocol.from', () => {
  it.each(['0.0.0.0/0', '10.0.0.0/40', 'balancer', '10.0.0.1 10.0.0.2'])('is not %s', (given) => {
    expect(problemsFrom({ env: { PROXY_PROTOCOL_FROM: given } })[0]).toContain('proxyProtocol.from');
  });

  it('is off by default: a header is a bad request', async () => {
    const proxy = await startProxy();
    const [status = 0] = await statusOf(proxy, V1 + LAST);
    expect(status).toBeGreaterThanOrEqual(400);
    expect(await rejections(proxy)).toEqual(NONE);
  });
});
