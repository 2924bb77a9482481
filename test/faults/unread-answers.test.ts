// A client that does not read its responses: it holds neither memory nor a connection for long.
import '../support/real-sockets.js';
import { describe, expect, test } from 'vitest';
import { textValue } from '../../src/dev-server/seed.js';
import { startDemoServer } from '../support/demo.js';
import { fixed } from '../support/fixed.js';
import { startProxy } from '../support/proxy.js';
import { openSocket } from '../support/raw-socket.js';

const HANDLE = '21.T11998/large';
const PATH = `/api/handles/${HANDLE}`;
const MIB = 1024 * 1024;
const QUESTIONS = 1000;

const demo = await startDemoServer();
demo.put(HANDLE, [textValue(1, 'DESC', 'x'.repeat(MIB))]);

const usedMiB = (): number => {
  const { external, heapUsed } = process.memoryUsage();
  return (external + heapUsed) / MIB;
};

describe('unread responses', () => {
  test('are not all buffered when 1,000 of 1 MiB each are pipelined, and their connection is closed', async () => {
    const proxy = await startProxy({
      UPSTREAM_URL: demo.url,
      ...fixed({ server: { idleTimeoutMs: 1000 }, upstream: { queueTimeoutMs: 100 } }),
      UPSTREAM_WRITE_TIMEOUT: '500ms',
    });
    expect((await proxy.ask(PATH)).text.length).toBeGreaterThan(MIB);
    const before = usedMiB();
    const socket = await openSocket(proxy.url);
    socket.pause();
    socket.write(`GET ${PATH} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(QUESTIONS));
    let most = 0;
    const open = async (): Promise<number> => {
      most = Math.max(most, usedMiB() - before);
      return proxy.connections();
    };
    await expect.poll(open, { interval: 20 }).toBe(0);
    expect(most).toBeLessThan(QUESTIONS / 4);
  });
});
