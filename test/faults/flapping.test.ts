// A server that fails every second request, and a server that sends records with a wrong Content-Type.
import '../support/real-sockets.js';
import { describe, expect, test } from 'vitest';
import { numberIn } from '../support/demo-writes.js';
import { startProxy } from '../support/proxy.js';
import { startFaultyServer } from './faulty-server.js';

const HOUR = 3_600_000;
const RETRY_AFTER = 5000;
const PATH = '/api/handles/21.T11998/kept';

describe('faulty Handle server', () => {
  test('receives one request per upstream.retryAfter, while readers receive stale records instead of errors', async () => {
    const server = await startFaultyServer();
    const proxy = await startProxy({ UPSTREAM_URL: server.url });
    await proxy.ask(PATH);
    server.takeRequests();
    let turn = 0;
    server.misbehave((response, answer) => {
      if (turn++ % 2 === 1) answer();
      else response.writeHead(500, { 'Content-Type': 'text/html' }).end('<h1>oh</h1>');
    });
    for (let round = 1; round <= 6; round++) {
      server.holds(round);
      proxy.pass(HOUR);
      const first = await proxy.ask(PATH);
      expect([first.status, first.headers['cache-status']]).toEqual([
        200,
        expect.stringContaining('detail=error'),
      ]);
      const second = await proxy.ask(PATH);
      expect([second.status, second.headers['cache-status']]).toEqual([
        200,
        expect.stringContaining('detail=backoff'),
      ]);
      proxy.pass(RETRY_AFTER);
      const third = await proxy.ask(PATH);
      expect([third.status, numberIn(third), third.headers['cache-status']]).toEqual([
        200,
        round,
        expect.stringContaining('fwd=miss'),
      ]);
      expect(server.takeRequests()).toBe(2);
    }
  });

  test('causes no backoff for uncached records', async () => {
    const server = await startFaultyServer();
    const proxy = await startProxy({ UPSTREAM_URL: server.url });
    let turn = 0;
    server.misbehave((response, answer) => {
      if (turn++ % 2 === 1) answer();
      else response.writeHead(500, { 'Content-Type': 'text/html' }).end('<h1>oh</h1>');
    });
    const statuses: number[] = [];
    for (let at = 0; at < 24; at++) statuses.push((await proxy.ask(`${PATH}-${at}`)).status);
    expect(statuses).toEqual(Array.from({ length: 12 }, () => [502, 200]).flat());
  });

  test('may send a record with a wrong Content-Type', async () => {
    const server = await startFaultyServer();
    const proxy = await startProxy({ UPSTREAM_URL: server.url });
    server.misbehave((response, answer) => {
      response.writeHead = new Proxy(response.writeHead.bind(response), {
        apply: (write: typeof response.writeHead, _self, [status]: [number]) =>
          write(status, { 'Content-Type': 'text/html' }),
      });
      answer();
    });
    const answer = await proxy.ask(PATH);
    expect([answer.status, numberIn(answer)]).toEqual([200, 1]);
    expect(answer.headers['content-type']).toContain('application/json');
  });
});
