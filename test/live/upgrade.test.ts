// Upgrade and CONNECT: the proxy rejects or ignores them, and sends all responses in order.
import '../support/real-sockets.js';
import { beforeEach, describe, expect, test } from 'vitest';
import { startDemoServer } from '../support/demo.js';
import { WRITE_HEADERS, numberedBody } from '../support/demo-writes.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { type RawAnswer, exchange, openSocket } from '../support/raw-socket.js';

const demo = await startDemoServer();
const HIT = '/api/handles/21.T11998/page';

beforeEach(() => {
  demo.heal();
  demo.reset();
});

const pathOf = (name: string): string => `/api/handles/21.T11998/${name}`;

function request(line: string, { version = '1.1', headers = {}, body = '' }: Options = {}): string {
  const all = { Host: 'x', ...headers, ...(body && { 'Content-Length': String(Buffer.byteLength(body)) }) };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`);
  return [`${line} HTTP/${version}`, ...lines, '', body].join('\r\n');
}
interface Options {
  version?: string;
  headers?: Record<string, string>;
  body?: string;
}

const get = (name: string): string => request(`GET ${pathOf(name)}`);
const handlesIn = (answers: RawAnswer[]): unknown[] =>
  answers.map(({ body }) => (JSON.parse(body) as { handle?: string }).handle);

async function startWithHit(): Promise<Proxy> {
  const proxy = await startProxy({ UPSTREAM_URL: demo.url });
  for (let times = 0; times < 3; times++) await proxy.ask(HIT);
  return proxy;
}

const UPGRADES: Record<string, string>[] = [
  { Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Key': 'x', 'Sec-WebSocket-Version': '13' },
  { Connection: 'Upgrade, HTTP2-Settings', Upgrade: 'h2c', 'HTTP2-Settings': 'AAMAAABkAAQAAP__' },
  { Connection: 'keep-alive, upgrade', Upgrade: 'TLS/1.0, HTTP/1.1' },
];

describe('Upgrade and CONNECT', () => {
  describe.each(['1.1', '1.0'])('over HTTP/%s', (version) => {
    describe.each(UPGRADES)('upgrade with %o', (upgrade) => {
      const headers =
        version === '1.0' ? { ...upgrade, Connection: `keep-alive, ${upgrade['Connection']}` } : upgrade;

      test.each(['page', 'located', 'nobody'])(
        'is ignored for %s, and later requests are answered in order until the connection closes',
        async (name) => {
          const proxy = await startWithHit();
          const asked = ['demo', name, 'alias', 'empty'];
          const bytes =
            get('demo') + request(`GET ${pathOf(name)}`, { version, headers }) + get('alias') + get('empty');
          const { answers, closed } = await exchange(proxy.url, bytes);
          const handles = handlesIn(answers);
          expect(handles.length).toBeGreaterThanOrEqual(2);
          expect(handles).toEqual(asked.slice(0, handles.length).map((known) => `21.T11998/${known}`));
          expect(closed).toBe(true);
          expect(answers.at(-1)?.headers['connection']).toBe('close');
        },
      );

      test('is ignored in a request with a body', async () => {
        const proxy = await startWithHit();
        const body = numberedBody(7);
        const put = request(`PUT ${pathOf('upgraded')}`, {
          version,
          headers: { ...WRITE_HEADERS, ...headers },
          body,
        });
        const { answers } = await exchange(proxy.url, put + get('page'));
        expect(answers[0]?.status).toBeOneOf([200, 201]);
        expect(await proxy.ask(pathOf('upgraded'))).toMatchObject({
          text: expect.stringContaining('example.org/7"') as string,
        });
        expect(handlesIn(answers.slice(1))).toEqual(answers.slice(1).map(() => '21.T11998/page'));
      });
    });

    test('cause a 501 for CONNECT, after the preceding responses, and open no tunnel', async () => {
      const proxy = await startWithHit();
      const connect = request('CONNECT 127.0.0.1:22', { version });
      const { answers, closed } = await exchange(
        proxy.url,
        get('page') + get('located') + connect + get('demo'),
      );
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 501]);
      expect(JSON.parse(answers[2]!.body)).toEqual({ responseCode: 4, message: 'Unknown method CONNECT' });
      expect(closed).toBe(true);
    });
  });

  test('never mix up responses when a packet follows an upgrade', async () => {
    const proxy = await startWithHit();
    demo.hold.holdReplies('GET');
    const socket = await openSocket(proxy.url);
    let received = '';
    socket.on('data', (chunk: Buffer) => (received += chunk.toString('latin1')));
    const closed = new Promise((resolve) => socket.once('close', resolve));
    const body = numberedBody(9);
    const put = request(`PUT ${pathOf('torn')}`, { headers: WRITE_HEADERS, body });
    // Most of the PUT follows the upgrade immediately, the rest while the upgrade waits for its response.
    socket.write(request(`GET ${pathOf('located')}`, { headers: UPGRADES[0]! }) + put.slice(0, -10));
    await expect.poll(() => demo.hold.size).toBe(1);
    socket.write(put.slice(-10));
    socket.write(get('page'));
    demo.hold.sendHeld('GET');
    await closed;
    expect(received.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200']);
    expect(received).toContain('"handle":"21.T11998/located"');
    expect(demo.askedFor('21.T11998/torn')).toBe(0);
  });

  test('do not affect later requests when the client disconnects after CONNECT', async () => {
    const proxy = await startWithHit();
    demo.hold.holdReplies('GET');
    const socket = await openSocket(proxy.url);
    socket.write(get('located') + request('CONNECT 127.0.0.1:22'));
    await expect.poll(() => demo.hold.size).toBe(1);
    socket.resetAndDestroy();
    demo.hold.sendHeld('GET');
    await expect.poll(() => proxy.connections()).toBe(0);
    expect((await proxy.ask(HIT)).status).toBe(200);
  });
});
