// The proxy rejects DELETE unless the configuration allows it (nodelete).
import { describe, expect, test } from 'vitest';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { HANDLE, PATH, mockUpstream, notFound } from '../support/upstream.js';
import { mockWrites } from '../support/writes.js';

useNock();

const VALUES = `${PATH}?index=1&index=2`;

describe('DELETE (nodelete)', () => {
  test.each([
    ['a handle', PATH, 'Deletion of handles is deactivated on this proxy (nodelete)'],
    ['values', VALUES, 'Deletion of values is deactivated on this proxy (nodelete)'],
  ])('is rejected for %s, with the reason in the body', async (_what, target, message) => {
    mockUpstream();
    const sent = mockWrites();
    const proxy = await startProxy();
    const answer = await proxy.ask(target, { method: 'DELETE', headers: { Authorization: 'Basic eDp5' } });
    expect(answer.status).toBe(403);
    expect(JSON.parse(answer.text)).toEqual({
      responseCode: 400,
      message,
      code: 'NO_DELETE',
      handle: HANDLE,
    });
    expect(answer.headers['content-type']).toBe('application/json;charset=utf-8');
    expect(answer.headers['cache-control']).toBe('no-store');
    expect(sent).toEqual([]);
  });

  test('preserves the cached record when rejected', async () => {
    const upstream = mockUpstream();
    const proxy = await startProxy();
    await proxy.ask(PATH);
    await proxy.ask(PATH, { method: 'DELETE' });
    expect((await proxy.ask(PATH)).headers['cache-status']).toContain('hit');
    expect(upstream.asked).toBe(1);
  });

  test('returns 404 for an unknown handle', async () => {
    mockUpstream(notFound());
    const sent = mockWrites();
    const proxy = await startProxy();
    for (const target of [PATH, VALUES]) {
      const answer = await proxy.ask(target, { method: 'DELETE' });
      expect(answer.status).toBe(404);
      expect(JSON.parse(answer.text)).toEqual({ responseCode: 100, handle: HANDLE });
      expect(answer.headers['cache-control'], 'the handle may be created').toBe('no-store');
    }
    expect(sent).toEqual([]);
    const counts = async () =>
      (await proxy.metrics()).find(({ name }) => name === 'handle_proxy_requests_total')?.values;
    await expect.poll(counts).toContainEqual(
      expect.objectContaining({
        value: 2,
        labels: { interface: 'record', result: 'refused', status: '404' },
      }),
    );
  });

  test('is rejected even when the existence check fails upstream', async () => {
    mockUpstream({ status: 500, body: '' });
    const sent = mockWrites();
    const proxy = await startProxy();
    expect((await proxy.ask(PATH, { method: 'DELETE' })).status).toBe(403);
    expect(sent).toEqual([]);
  });

  test('is rejected as JSONP when the query contains a callback', async () => {
    mockUpstream();
    const proxy = await startProxy();
    const { text } = await proxy.ask(`${PATH}?callback=f`, { method: 'DELETE' });
    expect(text).toMatch(/^f\(\{.*"responseCode":400.*\}\);$/);
  });

  test('never reaches the server without an index when only values may be deleted', async () => {
    mockUpstream();
    const sent = mockWrites();
    const proxy = await startProxy({ DELETION_VALUES: 'true' });
    for (const query of ['?index', '?index=', '?Index=1', '?indexes=1', '?%69ndex', '']) {
      await proxy.ask(PATH + query, { method: 'DELETE' });
    }
    // The server deletes the whole handle for a request without an index.
    expect(sent.filter(({ target }) => !/[?&](index|%69ndex)\b/.test(target))).toEqual([]);
  });
});

describe('configured deletion', () => {
  test.each([
    [{ DELETION_HANDLES: 'true' }, [PATH]],
    [{ DELETION_VALUES: 'true' }, [VALUES]],
    [{ DELETION_HANDLES: 'true', DELETION_VALUES: 'true' }, [PATH, VALUES]],
    [{ DELETION_ALLOWED_FOR: '21.T11998/abc' }, [PATH, VALUES]],
    [{ DELETION_ALLOWED_FOR: '21.t11998/A*' }, [PATH, VALUES]],
    [{ DELETION_ALLOWED_FOR: '21.T1/x,*BC' }, [PATH, VALUES]],
    [{ DELETION_ALLOWED_FOR: '21.T11998/ab' }, []],
    [{ DELETION_ALLOWED_FOR: '21.T11998/.*,21xT11998/abc,(.)*/+' }, []],
  ])('with %o, allows only %o', async (env, passing) => {
    mockUpstream();
    const sent = mockWrites();
    const proxy = await startProxy(env);
    const statuses = new Map<string, number>();
    for (const target of [PATH, VALUES]) {
      statuses.set(target, (await proxy.ask(target, { method: 'DELETE' })).status);
    }
    expect(sent.map(({ target }) => target)).toEqual(passing);
    for (const [target, status] of statuses) expect(status).toBe(passing.includes(target) ? 200 : 403);
  });

  test('rejects a handle that almost matches a pattern in very many ways', async () => {
    mockUpstream();
    const sent = mockWrites();
    const proxy = await startProxy({ DELETION_ALLOWED_FOR: '21.T11998/*-*-*-*-*-*-*-*-tmp' });
    const target = `/api/handles/21.T11998/${'-'.repeat(1500)}`;
    expect((await proxy.ask(target, { method: 'DELETE' })).status).toBe(403);
    expect(sent).toEqual([]);
  });
});
