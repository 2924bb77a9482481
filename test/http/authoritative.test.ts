import { describe, expect, test } from 'vitest';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { gate } from '../support/gate.js';
import { PATH, mockUpstream, notFound, recordOf, urlValue } from '../support/upstream.js';

useNock();

const old = recordOf([urlValue('https://example.org/old')]);
const fresh = recordOf([urlValue('https://example.org/new')]);

describe('authoritative read (auth=true)', () => {
  test.each(['?auth=true', '?auth', '?auth=yes', '?auth=TRUE'])(
    'is sent upstream with auth=true for every request with %s',
    async (query) => {
      const upstream = mockUpstream();
      const proxy = await startProxy();
      await proxy.ask(PATH);
      await proxy.ask(PATH + query);
      await proxy.ask(PATH + query);
      expect(upstream.targets).toEqual([PATH, `${PATH}?auth=true`, `${PATH}?auth=true`]);
    },
  );

  test.each(['?auth=false', '?auth=1', '?auth=on'])(
    'is not triggered by %s, which reads the cached record',
    async (query) => {
      const upstream = mockUpstream();
      const proxy = await startProxy();
      await proxy.ask(PATH);
      await proxy.ask(PATH + query);
      expect(upstream.targets).toEqual([PATH]);
    },
  );

  test('replaces the cached record', async () => {
    const upstream = mockUpstream(old);
    const proxy = await startProxy();
    await proxy.ask(PATH);
    upstream.answers(fresh);
    proxy.pass(1);
    expect((await proxy.ask(`${PATH}?auth=true&index=1`)).text).toContain('/new');
    expect((await proxy.ask(PATH)).text).toContain('/new');
    expect(upstream.asked).toBe(2);
  });

  test('evicts the cached record when the upstream returns 404', async () => {
    const upstream = mockUpstream(old);
    const proxy = await startProxy();
    await proxy.ask(PATH);
    upstream.answers(notFound());
    expect((await proxy.ask(`${PATH}?auth`)).status).toBe(404);
    expect((await proxy.ask(PATH)).status).toBe(404);
  });

  test('with 404 stores nothing, so that a handle created afterwards is found', async () => {
    const upstream = mockUpstream(notFound());
    const proxy = await startProxy();
    const { status, headers } = await proxy.ask(`${PATH}?auth`);
    expect([status, headers['cache-status']]).toEqual([404, expect.not.stringContaining('stored')]);
    upstream.answers(fresh);
    expect((await proxy.ask(PATH)).status).toBe(200);
  });

  test('evicts the cached record when the upstream refuses it', async () => {
    const upstream = mockUpstream(old);
    const proxy = await startProxy();
    await proxy.ask(PATH);
    upstream.answers({ status: 400, body: { responseCode: 301, message: "That prefix doesn't live here" } });
    expect((await proxy.ask(PATH)).status).toBe(200);
    expect((await proxy.ask(`${PATH}?auth`)).status).toBe(400);
    expect((await proxy.ask(PATH)).status).toBe(400);
  });

  test('does not join a single-flight load that started earlier', async () => {
    const { opened: after, open: release } = gate();
    const upstream = mockUpstream((target) => (target.includes('auth') ? fresh : { ...old, after }));
    const proxy = await startProxy();
    const slow = proxy.ask(PATH);
    // Names the target of any other request.
    await expect.poll(() => upstream.targets).toEqual([PATH]);
    expect((await proxy.ask(`${PATH}?auth`)).text).toContain('/new');
    release();
    expect((await slow).text).toContain('/old');
  });

  test('does not join an earlier authoritative read and discards its older response', async () => {
    const { opened: after, open: release } = gate();
    const upstream = mockUpstream({ ...old, after });
    const proxy = await startProxy();
    const slow = proxy.ask(`${PATH}?auth`);
    await expect.poll(() => upstream.asked).toBe(1);
    upstream.answers(fresh);
    expect((await proxy.ask(`${PATH}?auth`)).text).toContain('/new');
    release();
    expect((await slow).text, 'asked before the change').toContain('/old');
    expect((await proxy.ask(PATH)).text).toContain('/new');
  });

  test('stores the newer of two concurrent authoritative responses', async () => {
    const [first, second] = [gate(), gate()];
    const upstream = mockUpstream({ ...old, after: first.opened });
    const proxy = await startProxy();
    const one = proxy.ask(`${PATH}?auth`);
    await expect.poll(() => upstream.asked).toBe(1);
    upstream.answers({ ...fresh, after: second.opened });
    const other = proxy.ask(`${PATH}?auth`);
    await expect.poll(() => upstream.asked).toBe(2);
    first.open();
    expect((await one).text).toContain('/old');
    upstream.answers(fresh);
    second.open();
    expect((await other).text).toContain('/new');
    expect((await proxy.ask(PATH)).text, 'after the newer answer').toContain('/new');
  });

  test.each([
    [404, notFound()],
    [400, { status: 400, body: { responseCode: 301 } }],
  ])('detaches earlier loads, so that later readers do not join them (%i)', async (status, answer) => {
    const held = gate();
    const upstream = mockUpstream({ ...old, after: held.opened });
    const proxy = await startProxy();
    const slow = proxy.ask(PATH);
    await expect.poll(() => upstream.asked).toBe(1);
    upstream.answers(answer);
    expect((await proxy.ask(`${PATH}?auth`)).status).toBe(status);
    expect((await proxy.ask(PATH)).status).toBe(status);
    held.open();
    await slow;
    expect((await proxy.ask(PATH)).status, 'after the earlier load').toBe(status);
  });

  test('fails instead of serving the cached record', async () => {
    const upstream = mockUpstream(old);
    const proxy = await startProxy();
    await proxy.ask(PATH);
    upstream.answers({ status: 500, body: 'broken' });
    expect((await proxy.ask(`${PATH}?auth`)).status).toBe(502);
    expect((await proxy.ask(PATH)).status).toBe(200);
  });

  test('prevents downstream caches from reusing the response without revalidation', async () => {
    mockUpstream();
    const proxy = await startProxy();
    const { headers } = await proxy.ask(`${PATH}?auth=true`);
    expect(headers['cache-control']).toBe('no-cache');
    expect(headers['cache-status']).toBe('handle-resolver-proxy; fwd=request; ttl=3600; stored');
  });
});
