// Records restored from a snapshot are served stale until they are loaded again. Records that were written or
// purged since the snapshot are not restored.
import { join } from 'node:path';
import request from 'supertest';
import { describe, expect, test } from 'vitest';
import { useNock } from '../support/nock.js';
import type { Proxy } from '../support/proxy.js';
import { newFolder } from '../support/folder.js';
import { recordLine } from '../support/record-files.js';
import { snapshotOf, startLogged } from '../support/snapshot.js';
import { HANDLE, PATH, recordOf, urlValue } from '../support/upstream.js';
import { jsonAnswer, mockWrites } from '../support/writes.js';

useNock();

const broken = { status: 502, body: '<html>' };
const later = recordOf([urlValue('https://example.org/later')]);

describe('proxy restarted with a snapshot', () => {
  test('serves restored records as stale, with their age, while the upstream fails', async () => {
    const file = join(newFolder(), 'snapshot');
    const upstream = await snapshotOf(file);
    upstream.answers(broken);
    const proxy = await startLogged(file);
    expect(await proxy.line('snapshot loaded')).toMatchObject({ records: 1, restored: 1 });
    proxy.pass(60_000);
    const { status, text, headers } = await proxy.ask(PATH);
    expect([status, text]).toEqual([200, expect.stringContaining('https://example.org/1')]);
    expect(headers['cache-status']).toBe('handle-resolver-proxy; hit; ttl=0; detail=error');
    expect(headers.age).toBe('60');
  });

  test('queries the upstream before serving a restored record as fresh', async () => {
    const file = join(newFolder(), 'snapshot');
    const upstream = await snapshotOf(file);
    const askedBefore = upstream.asked;
    upstream.answers(later);
    const proxy = await startLogged(file);
    await proxy.line('snapshot loaded');
    expect((await proxy.ask(PATH)).text).toContain('/later');
    expect((await proxy.ask(PATH)).headers['cache-status']).toContain('; hit; ttl=');
    expect(upstream.asked).toBe(askedBefore + 1);
  });

  test('prefers a record that it loaded before the snapshot was read', async () => {
    const file = join(newFolder(), 'snapshot');
    const upstream = await snapshotOf(file);
    upstream.answers(later);
    const proxy = await startLogged(file);
    expect((await proxy.ask(PATH)).text).toContain('/later');
    await proxy.line('snapshot loaded');
    expect((await proxy.ask(PATH)).text).toContain('/later');
  });

  test('does not serve a restored record beyond its cache.staleIfError', async () => {
    const file = join(newFolder(), 'snapshot');
    const upstream = await snapshotOf(file);
    upstream.answers(broken);
    const proxy = await startLogged(file);
    await proxy.line('snapshot loaded');
    proxy.pass(25 * 3_600_000);
    expect((await proxy.ask(PATH)).status).toBe(502);
  });

  test.each([
    [
      'a write',
      (proxy: Proxy): Promise<unknown> =>
        proxy.ask(PATH, { method: 'PUT', headers: { Authorization: 'Basic eDp5' }, body: '{}' }),
    ],
    ['a purge', (proxy: Proxy) => proxy.app.operations.purge({ handles: [HANDLE], isSoft: false })],
    ['a prefix purge', (proxy: Proxy) => proxy.app.operations.purge({ prefix: '21.T11998/', isSoft: false })],
  ])('does not restore a record stored before %s, even after a crash', async (_, invalidate) => {
    const file = join(newFolder(), 'snapshot');
    const upstream = await snapshotOf(file);
    mockWrites(jsonAnswer(200, { responseCode: 1 }));
    const killed = await startLogged(file);
    await killed.line('snapshot loaded');
    await invalidate(killed);
    upstream.answers(broken);
    // The proxy is deliberately not closed, as after `kill -9`.
    const proxy = await startLogged(file);
    expect(await proxy.line('snapshot loaded')).toMatchObject({ records: 1, restored: 0 });
    expect((await proxy.ask(PATH)).status).toBe(502);
  });

  test('restores a soft-purged record as stale', async () => {
    const file = join(newFolder(), 'snapshot');
    const upstream = await snapshotOf(file);
    const killed = await startLogged(file);
    await killed.line('snapshot loaded');
    await killed.app.operations.purge({ prefix: '', isSoft: true });
    upstream.answers(broken);
    const proxy = await startLogged(file);
    await proxy.line('snapshot loaded');
    expect((await proxy.ask(PATH)).status).toBe(200);
  });

  test('an export has soft-purged records, which another proxy imports', async () => {
    const file = join(newFolder(), 'snapshot');
    await snapshotOf(file);
    const first = await startLogged(file);
    await first.line('snapshot loaded');
    await first.app.operations.purge({ prefix: '', isSoft: true });
    const { text } = await request(first.app.admin).get('/export?prefix=21.T11998').buffer();
    expect(JSON.parse(text)).toMatchObject({
      handle: HANDLE.toUpperCase(),
      staleAt: '1970-01-01T00:00:00.000Z',
    });
    const other = await startLogged(join(newFolder(), 'snapshot'));
    const imported = await request(other.app.admin).post('/import').type('text').send(text);
    expect(imported.body).toMatchObject({ restored: 1, rejected: 0 });
  });

  test.each([
    ['before 1970', '1969-12-31T23:59:59.999Z', 'requestedAt'],
    ['of the year -1', '-000001-01-01T00:00:00.000Z', 'requestedAt'],
    ['at the end of all dates', '+275760-09-13T00:00:00.000Z', 'staleAt'],
    ['after the year 9999', '+010000-01-01T00:00:00.000Z', 'deleteAt'],
  ])(
    'has no imported record with a time %s, which would end exports and damage the file',
    async (_, time, member) => {
      const file = join(newFolder(), 'snapshot');
      await snapshotOf(file);
      const before = await startLogged(file);
      await before.line('snapshot loaded');
      const wrong = {
        ...(JSON.parse(recordLine('21.T11998/WRONG')) as object),
        deleteAt: time,
        [member]: time,
      };
      const lines = [JSON.stringify(wrong), recordLine('21.T11998/RIGHT')].join('\n');
      const imported = await request(before.app.admin).post('/import').type('text').send(lines);
      expect(imported.body).toMatchObject({ restored: 1, rejected: 1 });
      const exported = await request(before.app.admin).get('/export?prefix=21.T11998').buffer();
      expect(exported.text).toContain('21.T11998/RIGHT');
      await before.close();
      const proxy = await startLogged(file);
      expect(await proxy.line('snapshot loaded')).toMatchObject({ records: 2, restored: 2 });
      expect(proxy.lines('snapshot rejected')).toEqual([]);
    },
  );
});
