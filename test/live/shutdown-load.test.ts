// Shutdown of the built program under load: it answers every request that it has read.
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { startBuiltProxy } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { exchangeOn, openSocket } from '../support/raw-socket.js';
import { type SteadyClient, startSteadyClient } from '../support/steady-client.js';

const demo = await startDemoServer();
const PATH = '/api/handles/21.T11998/page';

afterEach(() => {
  demo.heal();
  demo.reset();
});

/** Client pauses between requests: 0 keeps a connection busy, 100 ms leaves it mostly idle. */
const PAUSES_MS = [0, 0, 0, 0, 20, 20, 100, 100, 100, 100, 100, 100];

/** Number of restarts, which take some seconds each. Longer runs need a quiet machine. */
const RESTARTS = Number(process.env.RESTARTS ?? 2);

const sum = (counts: number[]): number => counts.reduce((all, count) => all + count, 0);

describe('shutdown under load', () => {
  test('loses no request on SIGTERM', async () => {
    const proxy = await startBuiltProxy({ UPSTREAM_URL: demo.url });
    demo.delay(60);
    let unknown = 0;
    // Each client requests hits, or new handles whose loads are in flight when the signal arrives.
    const next = [() => PATH, () => `/api/handles/21.T11998/unknown-${unknown++}`];
    const clients: SteadyClient[] = PAUSES_MS.flatMap((pauseMs) =>
      next.map((target) => startSteadyClient(proxy.url, { pauseMs, next: target })),
    );
    const answered = (): number => Math.min(...clients.map(({ statuses }) => statuses().length));
    await expect.poll(answered).toBeGreaterThan(5);
    const exited = proxy.stop();
    await Promise.all(clients.map(({ ended }) => ended));
    expect(await exited).toEqual({ code: 0, signal: null });
    expect(sum(clients.map(({ lost }) => lost()))).toBe(0);
    expect(new Set(clients.flatMap(({ statuses }) => statuses()))).toEqual(new Set([200, 404]));
  });

  test('answers a request on an idle connection with Connection: close', async () => {
    const proxy = await startBuiltProxy({ UPSTREAM_URL: demo.url });
    const socket = await openSocket(proxy.url);
    const question = `GET ${PATH} HTTP/1.1\r\nHost: proxy\r\n\r\n`;
    expect((await exchangeOn(socket, question)).headers).toMatchObject({ connection: 'keep-alive' });
    void proxy.stop();
    await expect.poll(() => proxy.output(), { interval: 10 }).toContain('"stopping"');
    const closed = once(socket, 'close');
    expect(await exchangeOn(socket, question)).toMatchObject({
      status: 200,
      headers: { connection: 'close' },
    });
    await closed;
  });

  test('adds Connection: close to the response to a request in flight', async () => {
    const proxy = await startBuiltProxy({ UPSTREAM_URL: demo.url });
    const socket = await openSocket(proxy.url);
    demo.hold.holdReplies('GET');
    const answer = exchangeOn(socket, `GET ${PATH} HTTP/1.1\r\nHost: proxy\r\n\r\n`);
    await expect.poll(() => demo.hold.size).toBe(1);
    void proxy.stop();
    await expect.poll(() => proxy.output(), { interval: 10 }).toContain('"stopping"');
    demo.hold.sendHeld('GET');
    expect(await answer).toMatchObject({ status: 200, headers: { connection: 'close' } });
  });

  type Ending = 'answered' | 'refused' | 'lost';

  /** Sends one request over a separate connection. */
  const askOnce = (url: string): Promise<Ending> =>
    new Promise((resolve) => {
      const { hostname, port } = new URL(url);
      const socket = connect(Number(port), hostname);
      let received = '';
      socket.setEncoding('latin1').on('data', (text: string) => (received += text));
      socket.once('connect', () =>
        socket.write(`GET ${PATH} HTTP/1.1\r\nHost: proxy\r\nConnection: close\r\n\r\n`),
      );
      socket.once('error', (error: NodeJS.ErrnoException) => {
        resolve(error.code === 'ECONNREFUSED' ? 'refused' : 'lost');
      });
      socket.once('close', () => {
        resolve(received.endsWith('}') ? 'answered' : 'lost');
      });
    });

  /** Repeats the request until the listener is closed. */
  async function askUntilRefused(url: string, count: (ending: Ending) => void): Promise<void> {
    let ending: Ending;
    do {
      ending = await askOnce(url);
      count(ending);
    } while (ending !== 'refused');
  }

  describe('SIGTERM with 100 clients', () => {
    test.each(Array.from({ length: RESTARTS }, (_, restart) => restart))(
      'closes a listener without dropping queued connections (restart %i)',
      async () => {
        const proxy = await startBuiltProxy({ UPSTREAM_URL: demo.url });
        const counts: Record<Ending, number> = { answered: 0, refused: 0, lost: 0 };
        const clients = Array.from({ length: 100 }, () =>
          askUntilRefused(proxy.url, (ending) => counts[ending]++),
        );
        await expect.poll(() => counts.answered, { timeout: 60_000 }).toBeGreaterThan(300);
        const exited = proxy.stop();
        await Promise.all(clients);
        expect(counts.refused).toBe(100);
        // A plain `server.close()` loses requests in nearly every shutdown.
        expect(counts.lost).toBe(0);
        expect(await exited).toEqual({ code: 0, signal: null });
      },
    );
  });
});
