// An uncaught error in a request listener affects only the failing request.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ServiceError } from '../../src/errors.js';
import { createOpenContext } from '../../src/http/context.js';
import { type ReportUnexpected, guard } from '../../src/http/error-reply.js';
import { createSendRaw } from '../../src/http/raw-response.js';
import { createSlicer } from '../upstream/ask.js';
import { exchange } from '../support/raw-socket.js';
import { admissionWith } from '../support/traffic.js';
import '../support/real-sockets.js';

type Failing = Parameters<typeof guard>[0]['listener'];

const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
const boom = new Error('thrown on purpose');

async function startGuarded(
  listener: Failing,
  report?: ReportUnexpected,
): Promise<{ url: string; reported: unknown[] }> {
  const reported: unknown[] = [];
  const server = createServer(guard({ listener }, report ?? ((error) => reported.push(error))));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, reported };
}

const rule = {
  name: 'all',
  match: {},
  limit: { perMinute: 1, by: 'rule' },
  log: false,
  shadow: false,
  robot: false,
} as const;
const { judgeHits } = admissionWith([rule], () => Promise.reject(boom));

const open = createOpenContext(
  () => undefined,
  () => ({
    address: '192.0.2.1',
    network: '192.0.2.0/24',
    isLocal: false,
    peer: { address: '192.0.2.1', isTrusted: false },
  }),
  createSendRaw(Date.now),
  createSlicer(),
);

const FAILING: [string, Failing][] = [
  [
    'throws',
    () => {
      throw boom;
    },
  ],
  [
    'throws with headers set',
    (_req, res) => {
      res.setHeader('ETag', '"x"').setHeader('Content-Length', '5');
      throw boom;
    },
  ],
  ['rejects', () => Promise.reject(boom)],
  ['rejects later', () => new Promise((_resolve, reject) => setImmediate(reject, boom))],
  [
    'calls its third argument',
    (_req, _res, fail) => {
      fail(boom);
    },
  ],
  [
    'cannot count requests',
    (req, res) => {
      open(req, res);
      return judgeHits?.(req, res);
    },
  ],
];

describe('uncaught error in a request listener', () => {
  test.each(FAILING)(
    'returns 500, is reported once and keeps the connection open when the listener %s',
    async (_how, listener) => {
      const { url, reported } = await startGuarded(listener);
      const { answers, closed } = await exchange(url, GET + GET, { answers: 2 });
      expect(closed).toBe(false);
      for (const { status, headers, body } of answers) {
        expect([status, JSON.parse(body)]).toEqual([
          500,
          { responseCode: 2, message: 'Unexpected error in the proxy', code: 'INTERNAL' },
        ]);
        expect(headers).toMatchObject({ 'cache-control': 'no-store' });
        expect(headers).not.toHaveProperty('etag');
      }
      expect(reported).toEqual([boom, boom]);
    },
  );

  test('aborts a response whose headers have already been sent', async () => {
    const { url, reported } = await startGuarded((_req, res) => {
      res.writeHead(200, { 'Content-Length': '10' }).write('half', () => {
        res.emit('half');
      });
      return new Promise((_resolve, reject) => res.once('half', reject.bind(undefined, boom)));
    });
    await expect(exchange(url, GET)).rejects.toThrow('left over');
    expect(reported).toEqual([boom]);
  });

  test('preserves a completed response and its connection', async () => {
    const { url, reported } = await startGuarded((_req, res) => {
      res.end('whole');
      throw boom;
    });
    const { answers, closed } = await exchange(url, GET + GET, { answers: 2 });
    expect([answers.map(({ body }) => body), closed]).toEqual([['whole', 'whole'], false]);
    expect(reported).toEqual([boom, boom]);
  });

  test('is reported with the request id of the 500 response', async () => {
    const reported: unknown[] = [];
    const listener: Failing = (req, res) => {
      open(req, res);
      throw boom;
    };
    const { url } = await startGuarded(listener, (...report) => reported.push(...report));
    const { answers } = await exchange(url, GET, { answers: 1 });
    expect(reported).toEqual([boom, answers[0]?.headers['x-request-id']]);
    expect(reported[1]).toMatch(/^[\da-f-]{36}$/);
  });

  test('is not reported when it is a ServiceError', async () => {
    const { url, reported } = await startGuarded(() => {
      throw new ServiceError('INTERNAL', { cause: boom });
    });
    const { answers } = await exchange(url, GET, { answers: 1 });
    expect(answers.map(({ status }) => status)).toEqual([500]);
    expect(reported).toEqual([]);
  });
});
