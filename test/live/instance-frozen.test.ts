// An instance frozen by SIGSTOP during a write: it processes missed messages before it serves a request.
import { beforeAll, afterAll, expect, onTestFinished, test } from 'vitest';
import { LEASE_MS } from '../../src/cache/coherence/lease.js';
import { type BuiltProxy, startConnectedProxy } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { putNumbered } from '../support/demo-writes.js';
import { nextMessage, openUdp, sendUdp } from '../support/native-client.js';
import { nativeRequest } from '../support/native-messages.js';
import { exchangeOn, openSocket, pipelineOn } from '../support/raw-socket.js';
import { type RedisServer, describeWithRedis, startRedis } from '../support/redis-server.js';

const demo = await startDemoServer();
const paths = Array.from({ length: 20 }, (_, at) => `/api/handles/21.T11998/missed-${at}`);
const questionOf = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

const HANDLE = '21.T11998/pending';
const PATH = `/api/handles/${HANDLE}`;

/** Sends a request over the same sockets as before, and returns its response as text. */
type AskAgain = () => Promise<string>;

async function pipelined({ url }: BuiltProxy, question: string): Promise<AskAgain> {
  const send = pipelineOn(await openSocket(url));
  return async () => JSON.stringify(await send(question));
}

/** Asks with the ETag of the first response. */
async function askIfChanged(frozen: BuiltProxy): Promise<AskAgain> {
  const { headers } = await exchangeOn(await openSocket(frozen.url), questionOf(PATH));
  const condition = `\r\nIf-None-Match: ${headers['etag'] ?? ''}\r\n\r\n`;
  return pipelined(frozen, questionOf(PATH).replace('\r\n\r\n', condition));
}

async function askOverUdp(frozen: BuiltProxy): Promise<AskAgain> {
  const { nativeUdp } = frozen.logs().find(({ msg }) => msg === 'listening') as { nativeUdp: string };
  const port = Number(nativeUdp.split(':').at(-1));
  // Opened in advance, so that a request is sent in the same turn as those over HTTP.
  const sockets = await Promise.all(Array.from({ length: 4 }, () => openUdp()));
  return async () => {
    const socket = sockets.pop()!;
    const message = nextMessage(socket);
    sendUdp(socket, port, nativeRequest(HANDLE));
    return Buffer.concat(await message).toString('latin1');
  };
}

describeWithRedis('frozen instance', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  const start = (env: Record<string, string> = {}): Promise<BuiltProxy> =>
    startConnectedProxy({
      REDIS_URL: redis.url,
      UPSTREAM_URL: demo.url,
      REDIS_COMMAND_TIMEOUT: '1s',
      ...env,
    });

  /**
   * Starts two connected instances. The second has every handle in memory, and an open connection for each.
   */
  async function startBoth() {
    const [writer, frozen] = await Promise.all([start(), start()]);
    const put = (number: number) => Promise.all(paths.map((path) => putNumbered(writer.url, path, number)));
    await put(1);
    const sockets = await Promise.all(paths.map(() => openSocket(frozen.url)));
    const askAll = () =>
      Promise.all(sockets.map((socket, at) => exchangeOn(socket, questionOf(paths[at] ?? ''))));
    for (const { body } of await askAll()) expect(body).toContain('example.org/1"');
    const thaw = (): boolean => process.kill(frozen.pid, 'SIGCONT');
    onTestFinished(() => void thaw());
    process.kill(frozen.pid, 'SIGSTOP');
    demo.reset();
    return { put, askAll, thaw };
  }

  test('delays a write by a different instance until its lease has ended, and serves no old record when it resumes', async () => {
    const { put, askAll, thaw } = await startBoth();
    for (const { status } of await put(2)) expect(status).toBe(200);
    const answers = askAll();
    thaw();
    for (const { body } of await answers) expect(body).toContain('example.org/2"');
  });

  test('has applied the pending writes by the time they are acknowledged, when it resumes early', async () => {
    const { put, askAll, thaw } = await startBoth();
    const frozenAt = performance.now();
    const written = put(2).then(() => performance.now());
    await expect
      .poll(() => paths.every((path) => demo.askedFor(path.slice('/api/handles/'.length)) === 1))
      .toBe(true);
    const thawedAt = performance.now();
    thaw();
    const acknowledgedAt = await written;
    // Otherwise the lease has ended, at least a quarter of its duration after the freeze.
    expect(acknowledgedAt > thawedAt || acknowledgedAt > frozenAt + LEASE_MS / 4).toBe(true);
    for (const { body } of await askAll()) expect(body).toContain('example.org/2"');
  });

  /**
   * The first requests arrive before the write, so that their sockets are readable before those of Redis; the
   * next ones arrive on the same sockets after the acknowledgement.
   */
  test('serves no old record on any interface to requests that it reads before the messages of Redis', async () => {
    const [writer, frozen] = await Promise.all([
      start(),
      start({ NATIVE_UDP_PORT: '0', REDIS_DISCONNECTED_MAX_AGE: '1m' }),
    ]);
    expect((await putNumbered(writer.url, PATH, 1)).status).toBeLessThan(300);
    const interfaces = await Promise.all([
      pipelined(frozen, questionOf(PATH)),
      pipelined(frozen, questionOf(`/${HANDLE}`)),
      askIfChanged(frozen),
      askOverUdp(frozen),
    ]);
    const askEach = (): Promise<string[]> => Promise.all(interfaces.map((next) => next()));
    // The second answers are prepared responses.
    await askEach();
    for (const answer of await askEach()) expect(answer).not.toContain('example.org/2');
    const thaw = (): boolean => process.kill(frozen.pid, 'SIGCONT');
    onTestFinished(() => void thaw());
    process.kill(frozen.pid, 'SIGSTOP');
    const before = askEach();
    expect((await putNumbered(writer.url, PATH, 2)).status).toBe(200);
    const after = askEach();
    thaw();
    await before;
    for (const answer of await after) expect(answer).toContain('example.org/2');
  });
});
