// Half-closed client connections (FIN, as `nc -N` sends it): the responses are still sent.
import '../support/real-sockets.js';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { beforeEach, describe, expect, test } from 'vitest';
import { MAX_SUBSCRIBERS } from '../../src/plugins/changes/changes.js';
import { startBuiltProxy } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { WRITE_HEADERS, numberedBody } from '../support/demo-writes.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { exchange, openSocket } from '../support/raw-socket.js';
import { USER01 } from '../support/v2.js';

const demo = await startDemoServer();
const HIT = '/api/handles/21.T11998/page';

beforeEach(() => {
  demo.heal();
  demo.reset();
});

async function startWithHit(env: Record<string, string> = {}): Promise<Proxy> {
  const proxy = await startProxy({ UPSTREAM_URL: demo.url, ...env });
  for (let times = 0; times < 3; times++) await proxy.ask(HIT);
  return proxy;
}

/** Returns all data received until the proxy closes its side. */
async function restOf(socket: Socket): Promise<string> {
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  await once(socket, 'close');
  return Buffer.concat(chunks).toString('latin1');
}

async function sendAndEnd({ url }: Pick<Proxy, 'url'>, bytes: string): Promise<string> {
  const socket = await openSocket(url);
  const received = restOf(socket);
  socket.end(bytes);
  return received;
}

const statusesIn = (received: string): string[] => received.match(/HTTP\/1\.1 \d+/g) ?? [];
const get = (path: string, more = ''): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n${more}\r\n`;
/** Returns a GET request with a Host that the admin listener accepts. */
const getHere = (path: string, more = ''): string => get(path, more).replace('Host: x', 'Host: localhost');

function put(path: string, number: number): string {
  const body = numberedBody(number);
  const headers = { Host: 'x', ...WRITE_HEADERS, 'Content-Length': String(Buffer.byteLength(body)) };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return [`PUT ${path} HTTP/1.1`, ...lines, '', body].join('\r\n');
}

describe('half-closed client connection', () => {
  describe('receives the response', () => {
    test.each([
      ['to a hit', get(HIT), 200],
      ['to a miss', get('/api/handles/21.T11998/located'), 200],
      ['to a handle that does not exist', get('/api/handles/21.T11998/nobody'), 404],
      ['to a write', put('/api/handles/21.T11998/half-closed', 1), 201],
      ['to a forwarded request', get('/api/handles/21.T11998/page', `Authorization: ${USER01}\r\n`), 200],
      ['to an ePIC v2 request', get('/api/v2/handles/21.T11998/page', `Authorization: ${USER01}\r\n`), 200],
      ['to a page request', get('/21.T11998/page?noredirect'), 200],
      ['in HTTP/1.0', get('/api/handles/21.T11998/alias').replace('1.1', '1.0'), 200],
    ])('%s', async (_what, bytes, status) => {
      const proxy = await startWithHit();
      demo.delay(20);
      const received = await sendAndEnd(proxy, bytes);
      expect(statusesIn(received)).toEqual([`HTTP/1.1 ${status}`]);
      const [head = '', body = ''] = received.split('\r\n\r\n');
      const length = /content-length: (\d+)/i.exec(head)?.[1];
      if (length !== undefined) expect(body).toHaveLength(Number(length));
    });

    test('to each pipelined request', async () => {
      const proxy = await startWithHit();
      demo.delay(20);
      const path = '/api/handles/21.T11998/pipelined';
      const received = await sendAndEnd(proxy, get(HIT) + put(path, 3) + get(path) + get(HIT));
      expect(statusesIn(received)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 201', 'HTTP/1.1 200', 'HTTP/1.1 200']);
      expect(received).toContain('example.org/3"');
    });

    test('when the client half-closes during an upstream request', async () => {
      const proxy = await startWithHit();
      demo.hold.holdReplies('GET');
      const socket = await openSocket(proxy.url);
      const received = restOf(socket);
      socket.write(get('/api/handles/21.T11998/located'));
      await expect.poll(() => demo.hold.size).toBe(1);
      socket.end();
      await once(socket, 'finish');
      // A response to a different request shows that the proxy has read the FIN.
      await proxy.ask(HIT);
      demo.hold.sendHeld('GET');
      expect(statusesIn(await received)).toEqual(['HTTP/1.1 200']);
    });
  });

  test('receives a response from the admin listener, even with an Upgrade header', async () => {
    const { adminUrl: url } = await startBuiltProxy({ UPSTREAM_URL: demo.url });
    expect(statusesIn(await sendAndEnd({ url }, getHere('/metrics')))).toEqual(['HTTP/1.1 200']);
    const upgrade = getHere('/healthz', 'Connection: upgrade\r\nUpgrade: h2c\r\n');
    const { answers, closed } = await exchange(url, upgrade + getHere('/nothing'));
    expect([closed, ...answers.map(({ status }) => status)]).toEqual([true, 200]);
  });

  describe('is closed', () => {
    test.each([
      ['without a request', ''],
      ['in the middle of a head', `GET ${HIT} HTTP/1.1\r\nHost`],
      ['in the middle of a body', put('/api/handles/21.T11998/cut-off', 1).slice(0, -5)],
    ])('when half-closed %s', async (_where, bytes) => {
      const proxy = await startWithHit();
      const received = await sendAndEnd(proxy, bytes);
      expect(received).not.toContain('HTTP/1.1 2');
      await expect.poll(() => proxy.connections()).toBe(0);
      expect(demo.askedFor('21.T11998/cut-off')).toBe(0);
    });

    test.each([
      ['a search', '?URL=*example*', ''],
      ['a list of records', '', 'Depth: 1\r\n'],
    ])('without a response during %s in ePIC v2', async (_what, query, more) => {
      const proxy = await startWithHit();
      demo.hold.holdReplies('GET');
      const socket = await openSocket(proxy.url);
      const received = restOf(socket);
      socket.write(get(`/api/v2/handles/21.T11998/${query}`, `Authorization: ${USER01}\r\n${more}`));
      await expect.poll(() => demo.hold.size).toBe(1);
      socket.end();
      expect(await received).toBe('');
      demo.hold.sendHeld('GET');
    });

    test('after a response or a timeout', async () => {
      const proxy = await startWithHit({ UPSTREAM_TIMEOUT: '1s', UPSTREAM_STALE_AFTER: '500ms' });
      await sendAndEnd(proxy, get(HIT));
      demo.fail('hang');
      const received = await sendAndEnd(proxy, get('/api/handles/21.T11998/located'));
      expect(statusesIn(received)).toEqual(['HTTP/1.1 504']);
      await expect.poll(() => proxy.connections()).toBe(0);
    });

    test('no later than the response when the client has closed both directions', async () => {
      const proxy = await startWithHit();
      demo.hold.holdReplies('GET');
      const [reset, gone] = [await openSocket(proxy.url), await openSocket(proxy.url)];
      for (const socket of [reset, gone]) socket.write(get('/api/handles/21.T11998/located'));
      gone.destroy();
      await expect.poll(() => demo.hold.size).toBe(1);
      reset.resetAndDestroy();
      // A full close looks like a half-close until a response is sent.
      await expect.poll(() => proxy.connections()).toBe(1);
      demo.hold.sendHeld('GET');
      await expect.poll(() => proxy.connections()).toBe(0);
    });
  });

  test.each(['/changes', '/events'])('leaves no place taken in an endless response (%s)', async (path) => {
    const { adminUrl: url } = await startBuiltProxy({ UPSTREAM_URL: demo.url, CHANGES_ENABLED: 'true' });
    const statusAt = async (): Promise<string | undefined> => {
      const socket = await openSocket(url);
      let received = '';
      socket.on('data', (bytes: Buffer) => (received += bytes.toString('latin1')));
      socket.write(getHere(path));
      // The first event, after which the feed is silent for 15 s, or the end of an error.
      await expect.poll(() => received).toMatch(/\n(?:id|data): .*\n\n|\}$/s);
      socket.destroy();
      return statusesIn(received)[0];
    };
    for (let count = 0; count < MAX_SUBSCRIBERS; count++) expect(await statusAt()).toBe('HTTP/1.1 200');
    await expect.poll(statusAt, { timeout: 8000 }).toBe('HTTP/1.1 200');
  });
});
