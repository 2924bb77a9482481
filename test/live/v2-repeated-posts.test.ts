// Repeated POSTs after a lost response: they create one handle, on any instance.
import '../support/real-sockets.js';
import type { Socket } from 'node:net';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { type Asked, ask } from '../support/ask.js';
import { basic, startDemoServer } from '../support/demo.js';
import { startProxy } from '../support/proxy.js';
import { openSocket } from '../support/raw-socket.js';
import { LITTLE_PATIENCE, type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';
import { redisIs, startSharing } from '../support/sharing-proxies.js';
import { USER01, askV2, read, urlTo } from '../support/v2.js';

const demo = await startDemoServer();

beforeEach(() => {
  demo.heal();
});

/** Returns the values of a POST. The proxy processes those of a large record in time slices. */
const valuesOf = (place: string): unknown[] =>
  place.startsWith('large')
    ? [urlTo(place), { type: 'NOTE', parsed_data: 'x'.repeat(20_000) }]
    : [urlTo(place)];

const post = (url: string, place: string): Promise<Asked> =>
  askV2(url)('/21.T11998', { method: 'POST', body: valuesOf(place) });

const pidIn = (answer: Asked): string => (read(answer) as { 'epic-pid': string })['epic-pid'];

/** Returns the handles with this URL at the Handle server. */
async function handlesOf(url: string, place: string): Promise<unknown> {
  return read(await askV2(url)(`/21.T11998?URL=*/${place}`));
}

/** Sends a POST whose write succeeds while its response and that of the following read are lost. */
async function postUnheard(url: string, place: string): Promise<string> {
  demo.fail('reset', { times: 5 });
  const answer = await post(url, place);
  demo.heal();
  expect(answer.status).toBe(504);
  return (read(answer) as { handle: string }).handle;
}

/** Sends a POST, and leaves while the response to its write is held. */
async function postAndLeave(
  url: string,
  place: string,
  login: string,
  leave: (socket: Socket) => void,
): Promise<void> {
  demo.hold.holdReplies('PUT');
  const { size } = demo.hold;
  const body = JSON.stringify(valuesOf(place));
  const socket = await openSocket(url);
  socket.write(
    `POST /api/v2/handles/21.T11998 HTTP/1.1\r\nHost: x\r\nAuthorization: ${login}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  await expect.poll(() => demo.hold.size).toBe(size + 1);
  leave(socket);
}

describe('repeated ePIC v2 POST', () => {
  test('creates one handle after a 504', async () => {
    const proxy = await startProxy({ UPSTREAM_URL: demo.url });
    for (const place of ['first', 'second', 'third', 'fourth']) {
      const name = await postUnheard(proxy.url, place);
      const again = await post(proxy.url, place);
      expect([again.status, pidIn(again)]).toEqual([201, name]);
      expect(await handlesOf(proxy.url, place)).toHaveLength(1);
    }
  });

  test.each([
    // A full close by the client looks like a half-close.
    ['closes', 'closed', (socket: Socket) => socket.destroy()],
    ['resets', 'reset', (socket: Socket) => socket.resetAndDestroy()],
    ['closes', 'large-closed', (socket: Socket) => socket.destroy()],
    ['resets', 'large-reset', (socket: Socket) => socket.resetAndDestroy()],
  ])('creates one handle after the client timed out and %s its connection (%s)', async (_, place, leave) => {
    const { url } = await startProxy({ UPSTREAM_URL: demo.url });
    await postAndLeave(url, place, USER01, leave);
    // A response to a different request shows that the proxy has read the close.
    await ask(url, '/api/site');
    demo.hold.holdReplies('GET');
    demo.hold.sendHeld('PUT');
    // The proxy reads the created record; another response shows that it has finished.
    await expect.poll(() => demo.hold.size).toBe(1);
    demo.hold.sendHeld('GET');
    await ask(url, '/api/site');
    await expect.poll(() => handlesOf(url, place)).toHaveLength(1);
    expect((await post(url, place)).status).toBe(201);
    expect(await handlesOf(url, place)).toHaveLength(1);
  });

  describeWithRedis('with Redis', () => {
    let redis: RedisServer;
    beforeAll(async () => {
      redis = await startRedis();
    });
    afterAll(() => redis.stop());

    test('creates one handle after a 504, on any instance', async () => {
      const sharing = { redisUrl: redis.url, upstreamUrl: demo.url };
      const [one, other] = [await startSharing(sharing), await startSharing(sharing)];
      const name = await postUnheard(one.url, 'elsewhere');
      const again = await post(other.url, 'elsewhere');
      expect([again.status, pidIn(again)]).toEqual([201, name]);
      expect(pidIn(await post(one.url, 'elsewhere'))).not.toBe(name);
    });

    test('creates one handle if Redis did not answer a repetition in time', async () => {
      const env = LITTLE_PATIENCE;
      const proxy = await startSharing({ redisUrl: redis.url, upstreamUrl: demo.url, env });
      const name = await postUnheard(proxy.url, 'late');
      redis.freeze();
      // On a stalled machine, Redis may already count as unavailable.
      const commands = proxy.app.host.cache.commands!;
      const isUp = vi.spyOn(commands, 'isUp').mockReturnValue(true);
      onTestFinished(() => {
        redis.thaw();
      });
      const early = await post(proxy.url, 'late');
      expect([early.status, early.headers['retry-after']]).toEqual([503, '1']);
      isUp.mockRestore();
      redis.thaw();
      await expect.poll(() => commands.isUp()).toBe(true);
      expect(pidIn(await post(proxy.url, 'late'))).toBe(name);
      expect(pidIn(await post(proxy.url, 'late'))).not.toBe(name);
    });

    test('creates other handles for later requests if Redis stored the name late', async () => {
      const env = LITTLE_PATIENCE;
      const proxy = await startSharing({ redisUrl: redis.url, upstreamUrl: demo.url, env });
      onTestFinished(() => {
        redis.thaw();
      });
      await postAndLeave(proxy.url, 'stored-late', USER01, (socket) => {
        redis.freeze();
        socket.resetAndDestroy();
      });
      await ask(proxy.url, '/api/site');
      await redisIs(proxy, 0);
      redis.thaw();
      await redisIs(proxy, 1);
      demo.hold.sendHeld('PUT');
      const pids: string[] = [];
      for (let posts = 0; posts < 3; posts++) pids.push(pidIn(await post(proxy.url, 'stored-late')));
      expect(await handlesOf(proxy.url, 'stored-late')).toHaveLength(3);
      expect(new Set(pids).size).toBe(3);
    });

    // Anyone could fill Redis otherwise.
    test('leaves no name in Redis if the Handle server has refused the login', async () => {
      const { url } = await startSharing({ redisUrl: redis.url, upstreamUrl: demo.url });
      const client = new Redis(redis.url);
      onTestFinished(() => {
        client.disconnect();
      });
      const names = () => client.keys('*unclaimed:*');
      const login = basic('300:21.T11998/USER01', 'wrong');
      await postAndLeave(url, 'refused', login, (socket) => socket.resetAndDestroy());
      await expect.poll(names).toHaveLength(1);
      demo.hold.sendHeld('PUT');
      await expect.poll(names).toEqual([]);
    });
  });
});
