// A process that was paused, by SIGSTOP or a suspended machine, finds its timers due and responses unread.
import '../support/real-sockets.js';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { startProxy } from '../support/proxy.js';
import { newFolder } from '../support/folder.js';
import { HANDLE, PATH, recordOf, urlValue } from '../support/upstream.js';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Flags by position: a request has been received; the response may be sent; it has been sent. */
const [RECEIVED, RELEASED, SENT] = [0, 1, 2] as const;

/** Runs in a separate thread, so that it responds while the proxy is paused. */
const SERVER = `
const { parentPort, workerData: { flags, body } } = require('node:worker_threads');
const set = (at) => { Atomics.store(flags, at, 1); Atomics.notify(flags, at); };
const server = require('node:http').createServer((req, res) => {
  req.resume().on('end', () => {
    set(${RECEIVED});
    Atomics.wait(flags, ${RELEASED}, 0);
    res.writeHead(200, { 'Content-Type': 'application/json' }).end(body);
    setImmediate(() => set(${SENT}));
  });
});
server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));
`;

async function startServerThread(values: unknown[]) {
  const flags = new Int32Array(new SharedArrayBuffer(12));
  const body = JSON.stringify(recordOf(values).body);
  const worker = new Worker(SERVER, { eval: true, workerData: { flags, body } });
  onTestFinished(async () => {
    await worker.terminate();
  });
  const port = await new Promise<number>((resolve) => worker.once('message', resolve));
  return { flags, url: `http://127.0.0.1:${port}` };
}

const PUT = { method: 'PUT', headers: { Authorization: 'Basic eDp5' }, body: '{}' };

describe('a response that came during a pause of the process', () => {
  test.each([
    { name: 'a read', question: {} },
    { name: 'a read of a record that no socket buffers', question: {}, length: 1_000_000 },
    { name: 'a read with a login', question: { headers: { Authorization: 'Basic eDp5' } } },
    { name: 'a write', question: PUT },
    { name: 'a write with such a response', question: PUT, length: 1_000_000 },
    { name: 'a write that is settled later', question: PUT, hasSnapshot: true },
  ])('answers $name, although the timeout is over', async ({ question, length = 1, hasSnapshot }) => {
    const { flags, url } = await startServerThread([urlValue('x'.repeat(length))]);
    const snapshot = hasSnapshot === true ? { CACHE_SNAPSHOT_FILE: join(newFolder(), 'snapshot') } : {};
    const proxy = await startProxy({ UPSTREAM_URL: url, ...snapshot });
    const answer = proxy.ask(PATH, question);
    while (Atomics.load(flags, RECEIVED) === 0) await nextTurn();
    Atomics.store(flags, RELEASED, 1);
    Atomics.notify(flags, RELEASED);
    Atomics.wait(flags, SENT, 0);
    vi.advanceTimersByTime(60_000);
    // The second half of the timeout is over before the deletion is logged.
    if (hasSnapshot === true) setImmediate(() => vi.advanceTimersByTime(60_000));
    const { status, text } = await answer;
    expect([status, text]).toEqual([200, expect.stringContaining(HANDLE)]);
  });
});
