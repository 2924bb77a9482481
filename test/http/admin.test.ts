import '../support/real-sockets.js';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import request from 'supertest';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createMetrics } from '../../src/observe/metrics.js';
import { ask } from '../support/ask.js';
import { createAdminAlone, noOperations } from '../support/admin.js';
import { createReadiness } from '../../src/observe/health.js';
import { testContext } from '../support/context.js';

const admin = (deps?: Parameters<typeof createAdminAlone>[0]) => request(createAdminAlone(deps));

describe('admin listener', () => {
  it('reports liveness regardless of component readiness', async () => {
    const readiness = createReadiness();
    readiness.register('redis', () => false);
    const answer = await admin({ readiness }).get('/healthz').expect(200);
    expect(answer.body).toEqual({ status: 'ok' });
  });

  it('fails the liveness probe and reports the blocked time while the event loop is blocked', async () => {
    const answer = await admin({ blockedMs: () => 3021.4 })
      .get('/healthz')
      .expect(503);
    expect(answer.body).toEqual({ status: 'blocked', blockedMs: 3021 });
  });

  it('reports readiness when every component is ready', async () => {
    const answer = await admin().get('/readyz').expect(200);
    expect(answer.body).toEqual({ status: 'ready', notReady: [] });
  });

  it('names unready components', async () => {
    const readiness = createReadiness();
    readiness.register('redis', () => false);
    readiness.register('listener', () => true);
    const answer = await admin({ readiness }).get('/readyz').expect(503);
    expect(answer.body).toEqual({ status: 'not ready', notReady: ['redis'] });
  });

  it('serves metrics in the Prometheus text format', async () => {
    const metrics = createMetrics();
    metrics.countRedisError('get');
    const answer = await admin({ metrics }).get('/metrics').expect(200);
    expect(answer.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(answer.text).toContain('handle_proxy_redis_errors_total{command="get"} 1');
  });

  it.each(['/nothing', '/api/handles/21.T1/a', '/metrics/x'])(
    'returns a 404 problem+json response for %s',
    async (path) => {
      const answer = await admin().get(path).expect(404);
      expect(answer.headers['content-type']).toBe('application/problem+json; charset=utf-8');
      expect(answer.body).toEqual({
        title: 'Unknown HTTP API endpoint',
        status: 404,
        code: 'UNKNOWN_ENDPOINT',
        responseCode: 4,
        detail: `GET ${path} is not served here`,
      });
    },
  );

  it('logs the error code of a rejected call', async () => {
    const context = testContext();
    await admin({ context, token: 'a-token-of-the-operator' }).get('/stats').expect(401);
    await admin({ context }).get('/nothing').expect(404);
    await admin({ context }).post('/purge').send('{').expect(400);
    await admin({ context }).get('/stats').expect(200);
    const calls = (): unknown[] =>
      context.lines.filter(({ msg }) => msg === 'admin call').map(({ path, code }) => [path, code]);
    await expect.poll(calls).toEqual([
      ['/stats', 'ADMIN_TOKEN_NEEDED'],
      ['/nothing', 'UNKNOWN_ENDPOINT'],
      ['/purge', 'ADMIN_BAD_BODY'],
      ['/stats', undefined],
    ]);
  });

  it.each([
    ['/healthz', 'GET, HEAD, OPTIONS'],
    ['/metrics', 'GET, HEAD, OPTIONS'],
    ['/stats', 'GET, HEAD, OPTIONS'],
    ['/purge', 'POST, OPTIONS'],
    ['/log-level', 'PUT, OPTIONS'],
  ])('rejects unsupported methods on %s with 405 and Allow: %s', async (path, allow) => {
    const answer = await admin().delete(path).expect(405);
    expect(answer.headers['allow']).toBe(allow);
    expect(answer.body).toMatchObject({ code: 'METHOD_NOT_ALLOWED', status: 405 });
    expect((await admin().options(path).expect(204)).headers['allow']).toBe(allow);
  });

  it('returns problem+json for a path with invalid percent-encoding', async () => {
    await admin()
      .get('/%zz')
      .expect(404)
      .expect('content-type', /problem\+json/);
  });

  it.each([
    ['http://admin.example/healthz', 200],
    ['http://[/healthz', 200],
    ['http://[', 200],
    ['http://[/stats?top=1', 200],
    ['http://[/nothing', 404],
  ])('routes the absolute-form request target %s by its path', async (target, status) => {
    const onUnexpected = vi.fn();
    const server = createServer(createAdminAlone({ onUnexpected })).listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    expect((await ask(`http://127.0.0.1:${port}`, target)).status).toBe(status);
    expect(onUnexpected).not.toHaveBeenCalled();
  });

  it('logs the cause of an internal error without revealing it to the client', async () => {
    const failure = new Error('secret');
    const onUnexpected = vi.fn();
    const stats = (): never => {
      throw failure;
    };
    const operations = { ...noOperations, stats };
    const answer = await admin({ operations, onUnexpected }).get('/stats').expect(500);
    expect(answer.body).toMatchObject({ status: 500, code: 'INTERNAL' });
    expect(answer.text).not.toContain('secret');
    expect(onUnexpected).toHaveBeenCalledExactlyOnceWith(failure);
  });

  it.each(['/', '/healthz', '/readyz', '/metrics', '/stats', '/nothing'])(
    'sends Cache-Control: no-store for %s',
    async (path) => {
      const answer = await admin().get(path);
      expect(answer.headers['cache-control']).toBe('no-store');
      expect(answer.headers).not.toHaveProperty('x-powered-by');
    },
  );
});
