// The change feed of slow and idle subscribers, with a feed that always has, or never has, further changes.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import express, { type Response } from 'express';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { createChangeStream } from '../../src/plugins/changes/changes.js';
import type { ChangeLog } from '../../src/plugins/changes/change-log.js';

const BATCH = 100;
const LINE = JSON.stringify({ operation: 'update', handle: `21.T1/${'a'.repeat(2000)}` });
const BATCH_BYTES = BATCH * (LINE.length + 100);

/** Starts the stream of a feed, and subscribes with a socket that is paused. */
async function subscribe(read: ChangeLog['read']) {
  const feed = { read, tail: () => Promise.resolve('1-0') } as ChangeLog;
  let response: Response | undefined;
  const app = express().get(
    '/changes',
    (_req, res, next) => {
      response = res;
      next();
    },
    createChangeStream(feed),
  );
  const server = createServer(app).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').pause();
  onTestFinished(() => {
    socket.destroy();
    server.close();
  });
  socket.write('GET /changes HTTP/1.1\r\nHost: proxy\r\nLast-Event-ID: 1-0\r\n\r\n');
  await expect.poll(() => response?.headersSent).toBe(true);
  return { socket, res: response! };
}

/** Returns a feed without end. */
function createEndlessFeed() {
  let reads = 0;
  const read: ChangeLog['read'] = (after) => {
    reads++;
    const last = Number(after.split('-')[1]);
    const entries = Array.from({ length: BATCH }, (_, at) => ({ id: `1-${last + at + 1}`, line: LINE }));
    return Promise.resolve({ entries, missed: 0 });
  };
  /** Waits until the feed is not read any more. Returns the number of reads. */
  const whenFull = async (): Promise<number> => {
    const isFull = async (): Promise<boolean> => {
      const before = reads;
      for (let turn = 0; turn < 100; turn++) await nextTurn();
      return reads > 0 && reads === before;
    };
    await expect.poll(isFull).toBe(true);
    return reads;
  };
  return { read, whenFull };
}

afterEach(() => vi.restoreAllMocks());

describe('a slow subscriber of the change feed', () => {
  it('costs the memory of one batch, and then receives each change once', async () => {
    const { read, whenFull } = createEndlessFeed();
    const { socket, res } = await subscribe(read);
    const reads = await whenFull();
    expect(res.writableNeedDrain).toBe(true);
    expect(res.writableLength).toBeLessThan(BATCH_BYTES + res.writableHighWaterMark);
    let text = '';
    socket.setEncoding('utf8').on('data', (part: string) => (text += part));
    socket.resume();
    const ids = (): number[] => [...text.matchAll(/^id: 1-(\d+)$/gm)].map(([, id]) => Number(id));
    await expect.poll(() => ids().length).toBeGreaterThan(BATCH * (reads + 1));
    const received = ids();
    expect(received).toEqual(received.map((_, at) => at + 1));
  });

  it('is awaited without derived signals, which Node.js 20 keeps for as long as their source', async () => {
    const derive = vi.spyOn(AbortSignal, 'any');
    const { read, whenFull } = createEndlessFeed();
    const { res } = await subscribe(read);
    await whenFull();
    expect(res.writableNeedDrain).toBe(true);
    expect(derive).not.toHaveBeenCalled();
  });

  it('is disconnected when it does not read for ten seconds', async () => {
    let deadline = new AbortController();
    const timeout = vi.spyOn(AbortSignal, 'timeout').mockImplementation(() => {
      deadline = new AbortController();
      return deadline.signal;
    });
    const { read, whenFull } = createEndlessFeed();
    const { res } = await subscribe(read);
    const reads = await whenFull();
    expect(timeout).toHaveBeenLastCalledWith(10_000);
    const closed = once(res, 'close');
    deadline.abort();
    await closed;
    expect(await whenFull()).toBe(reads);
  });

  it('gives up its place as soon as it disconnects', async () => {
    vi.spyOn(AbortSignal, 'timeout').mockImplementation(() => new AbortController().signal);
    const { read, whenFull } = createEndlessFeed();
    const { socket, res } = await subscribe(read);
    await whenFull();
    expect(res.listenerCount('drain')).toBe(1);
    socket.destroy();
    await expect.poll(() => res.listenerCount('drain'), { timeout: 5000 }).toBe(0);
  });
});

describe('an idle subscriber of the change feed', () => {
  it('receives a comment every 15 s', async () => {
    const { socket } = await subscribe(() => Promise.resolve({ entries: [], missed: 0 }));
    const clock = performance.now.bind(performance);
    let text = '';
    socket.setEncoding('utf8').on('data', (part: string) => (text += part));
    socket.resume();
    const comments = (): number => text.split(': \n\n').length - 1;
    for (const count of [1, 2]) {
      vi.spyOn(performance, 'now').mockImplementation(() => clock() + count * 15_000);
      await expect.poll(comments).toBe(count);
    }
  });
});
