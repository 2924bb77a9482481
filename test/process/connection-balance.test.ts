// Which connections a busy worker ends, so that their clients come to one that is free.
import { type Server, createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { once } from 'node:events';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  PoolBalance,
  type WorkerLoad,
  connectionsToEnd,
  createBalance,
} from '../../src/process/cluster/connection-balance.js';
import { openSocket } from '../support/raw-socket.js';

const FREE: WorkerLoad = { connections: 0, utilization: 0.1 };

describe('a worker ends', () => {
  test.each<[string, WorkerLoad, WorkerLoad[], number]>([
    ['half of those above the mean', { connections: 16, utilization: 0.9 }, [FREE], 4],
    ['the last one above the mean', { connections: 9, utilization: 0.9 }, [{ ...FREE, connections: 7 }], 1],
    ['none within one of the mean', { connections: 8, utilization: 0.9 }, [{ ...FREE, connections: 7 }], 0],
    ['none while it has time for more', { connections: 16, utilization: 0.4 }, [FREE], 0],
    ['none while all are busy', { connections: 16, utilization: 1 }, [{ ...FREE, utilization: 0.9 }], 0],
    ['none where it is the only one', { connections: 16, utilization: 1 }, [], 0],
  ])('%s', (_what, worker, others, expected) => {
    expect(connectionsToEnd(worker, others)).toBe(expected);
  });
});

test('a worker that has not reported for two seconds is not free, however little it had to do', () => {
  const balance = new PoolBalance();
  balance.report(1, FREE, 1000);
  expect(balance.report(2, { connections: 16, utilization: 0.9 }, 2999)).toBe(4);
  expect(balance.report(2, { connections: 16, utilization: 0.9 }, 3000)).toBe(0);
});

const load = fc.record({
  connections: fc.nat(5000),
  utilization: fc.double({ min: 0, max: 1, noNaN: true }),
});

test('no worker ends so many that it has fewer than the mean', () => {
  fc.assert(
    fc.property(load, fc.array(load, { minLength: 1, maxLength: 16 }), (worker, others) => {
      const mean =
        [worker, ...others].reduce((sum, { connections }) => sum + connections, 0) / (others.length + 1);
      const ended = connectionsToEnd(worker, others);
      expect(ended).toBeGreaterThanOrEqual(0);
      if (ended > 0) expect(worker.connections - ended).toBeGreaterThanOrEqual(mean);
    }),
  );
});

async function listen(): Promise<{ server: Server; url: string }> {
  const server = createServer((_req, res) => res.end('ok'));
  server.listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  await once(server, 'listening');
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

async function ask(socket: Socket): Promise<string> {
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
  return String(await once(socket, 'data'));
}

test('a response tells that its connection ends, as many times as there are too many', async () => {
  const { server, url } = await listen();
  const balance = createBalance(server);
  const [ending, staying] = [await openSocket(url), await openSocket(url)];
  for (const socket of [ending, staying]) expect(await ask(socket)).toContain('Connection: keep-alive');
  expect(await balance.load()).toMatchObject({ connections: 2 });
  balance.end(1);
  const ended = once(ending, 'close');
  expect(await ask(ending)).toContain('Connection: close');
  expect(await ask(staying)).toContain('Connection: keep-alive');
  await ended;
});
