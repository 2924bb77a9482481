// The budget for unsent responses: beyond it the proxy closes connections without recent progress.
import '../support/real-sockets.js';
import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { describe, expect, test, vi } from 'vitest';
import { createMemoryBudget } from '../../src/http/request-body.js';
import { UnsentCount } from '../../src/server/unsent.js';
import { createMetrics } from '../../src/observe/metrics.js';
import { createLogger } from '../../src/observe/logger.js';
import { textValue } from '../../src/dev-server/seed.js';
import { testContext } from '../support/context.js';
import { startDemoServer } from '../support/demo.js';
import { fixed } from '../support/fixed.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { openSocket } from '../support/raw-socket.js';

const HANDLE = '21.T11998/large';
const PATH = `/api/handles/${HANDLE}`;
const MIB = 1024 * 1024;
const SIZE = 12 * MIB;

const demo = await startDemoServer();
demo.put(HANDLE, [textValue(1, 'DESC', 'x'.repeat(SIZE))]);

/** Two responses fit into the budget. */
const env = {
  UPSTREAM_URL: demo.url,
  ...fixed({ http: { maxUnsentResponseBytes: 32 * MIB } }),
  UPSTREAM_MAX_RECORD_SIZE: '16MiB',
};

async function countUnread(proxy: Proxy): Promise<number> {
  const metrics = await proxy.metrics();
  const { values } = metrics.find(({ name }) => name === 'handle_proxy_connections_dropped_total')!;
  return values.find(({ labels }) => labels['reason'] === 'unread')!.value;
}

async function askAndNotRead(url: string, path: string): Promise<void> {
  const socket = await openSocket(url);
  socket.pause();
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
}

describe('budget for unsent responses', () => {
  test.each([
    ['a record from memory', PATH],
    ['a record served by Express', `/${HANDLE}?action=api&pretty`],
  ])(
    'disconnects eight of ten clients that do not read %s, and serves a client that reads',
    async (_what, path) => {
      const lines: string[] = [];
      const logger = createLogger({ level: 'warn', destination: { write: (line) => void lines.push(line) } });
      const proxy = await startProxy(env, { logger });
      expect((await proxy.ask(path)).text.length).toBeGreaterThan(SIZE);
      for (let count = 0; count < 10; count++) await askAndNotRead(proxy.url, path);
      await expect.poll(() => countUnread(proxy)).toBe(8);
      await expect.poll(() => proxy.connections()).toBe(2);
      const { status, text } = await proxy.ask(path);
      expect([status, text.length > SIZE]).toEqual([200, true]);
      expect(await countUnread(proxy)).toBe(9);
      // The warning is logged at most once per minute.
      expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual([
        'unread answers, closing their connections',
      ]);
    },
  );

  test('counts a batch while it is written: disconnects clients that do not read it, and serves a client that reads', async () => {
    const proxy = await startProxy({ ...env, ...fixed({ http: { maxUnsentResponseBytes: 4 * MIB } }) });
    const path = `/api/handles?${Array<string>(3).fill(`handle=${HANDLE}`).join('&')}`;
    // The kernel takes most of an element of 12 MiB, and the proxy holds the rest.
    for (let count = 0; count < 10; count++) await askAndNotRead(proxy.url, path);
    await expect.poll(() => countUnread(proxy)).toBeGreaterThanOrEqual(3);
    const { status, text } = await proxy.ask(path);
    expect([status, text.length > 3 * SIZE]).toEqual([200, true]);
  });

  test('allows one response larger than the budget', async () => {
    const proxy = await startProxy({ ...env, ...fixed({ http: { maxUnsentResponseBytes: MIB } }) });
    for (let times = 0; times < 3; times++) {
      expect((await proxy.ask(PATH)).text.length).toBeGreaterThan(SIZE);
    }
    expect(await countUnread(proxy)).toBe(0);
  });

  /** Creates a socket with only the properties that the budget reads. */
  function fakeConnection() {
    const state = { writeQueueSize: 0, isOpen: true };
    const ended = new EventEmitter();
    const socket = {
      writableLength: 100_000,
      _handle: state,
      destroy() {
        state.isOpen = false;
        ended.emit('close');
      },
    } as unknown as Socket;
    return { state, ended, socket };
  }

  function startCount(maxBytes: number) {
    const unsent = createMemoryBudget(maxBytes);
    const context = testContext({ metrics: createMetrics() });
    const dropped: string[] = [];
    vi.spyOn(context.metrics, 'countDroppedConnection').mockImplementation(
      (reason) => void dropped.push(reason),
    );
    const count = new UnsentCount(unsent, context, 'http');
    const ask = () => {
      const connection = fakeConnection();
      count.countWritten(connection.socket, connection.ended);
      return connection;
    };
    return { unsent, dropped, ask };
  }

  test('disconnects the client that has read nothing for longest before a slow reader', () => {
    const { dropped, ask } = startCount(350_000);
    const [slow, unread, other] = [ask(), ask(), ask()];
    const open = () => [slow, unread, other].map(({ state }) => state.isOpen);
    slow.state.writeQueueSize--;
    ask();
    expect(open()).toEqual([true, false, true]);
    slow.state.writeQueueSize--;
    ask();
    expect(open()).toEqual([true, false, false]);
    expect(dropped).toEqual(['unread', 'unread']);
  });

  test('closes the oldest response when all clients read, and never the newest', () => {
    const { ask } = startCount(250_000);
    const all = [ask(), ask()];
    for (const { state } of all) state.writeQueueSize--;
    all.push(ask());
    expect(all.map(({ state }) => state.isOpen)).toEqual([false, true, true]);
  });

  test('releases the bytes of sent and closed responses', () => {
    const { unsent, dropped, ask } = startCount(250_000);
    for (let times = 0; times < 100; times++) ask().ended.emit('close');
    ask();
    ask();
    expect(dropped).toEqual([]);
    expect(unsent.holders.size).toBe(2);
  });

  test('replaces what a streamed response holds, and releases it at the end', () => {
    const unsent = createMemoryBudget(1_000_000);
    const held: number[] = [];
    let total = 0;
    vi.spyOn(unsent, 'add').mockImplementation((bytes) => void held.push((total += bytes)));
    vi.spyOn(unsent, 'free').mockImplementation((bytes) => void (total -= bytes));
    const { ended, socket } = fakeConnection();
    const hold = new UnsentCount(unsent, testContext(), 'http').countStream(
      Object.assign(ended, { socket }) as never,
    );
    for (const bytes of [300_000, 200_000, 64 * 1024, 100_000]) hold(bytes);
    expect([held, total]).toEqual([[300_000, 200_000, 100_000], 100_000]);
    ended.emit('close');
    hold(500_000);
    expect([total, unsent.holders.size]).toEqual([0, 0]);
  });

  test('excludes short responses', () => {
    const { unsent } = startCount(1);
    const { socket, ended } = fakeConnection();
    Object.assign(socket, { writableLength: 64 * 1024 });
    new UnsentCount(unsent, testContext(), 'http').countWritten(socket, ended);
    expect(unsent.holders.size).toBe(0);
  });
});
