// The first copy of a large prefix. MIRROR_HANDLES=100000 measures it, with server and proxy in one process.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { PAGE_SIZE } from '../../src/plugins/mirror/names.js';
import { startProxy } from '../support/proxy.js';

const { MIRROR_HANDLES } = process.env;
const COUNT = Number(MIRROR_HANDLES ?? 500);

const NAMES = Array.from({ length: COUNT }, (_, at) => `21.T1/0000-0000-${String(at).padStart(8, '0')}`);

function listOf(page: number) {
  const handles = NAMES.slice(page * PAGE_SIZE, (page + 1) * PAGE_SIZE);
  return { responseCode: 1, prefix: '21.T1', totalCount: String(COUNT), handles };
}

function recordOf(handle: string) {
  const timestamp = '2026-11-21T09:00:00Z';
  const url = { format: 'string', value: `https://repository.example.org/objects/${handle}` };
  return {
    responseCode: 1,
    handle,
    values: [{ index: 1, type: 'URL', data: url, ttl: 86_400, timestamp }],
  };
}

/** Starts a Handle server that needs little CPU time. Returns its URL and the number of requests. */
async function startLargeServer() {
  let requests = 0;
  const server = createServer((req, res) => {
    requests++;
    const { pathname, searchParams } = new URL(req.url ?? '', 'http://server');
    const page = searchParams.get('page');
    const handle = decodeURIComponent(pathname.slice('/api/handles/'.length));
    res.setHeader('Content-Type', 'application/json;charset=UTF-8');
    res.end(JSON.stringify(page === null ? recordOf(handle) : listOf(Number(page))));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests: () => requests };
}

describe('large mirror', () => {
  it('reads each handle once, and retains all records in memory', async () => {
    const rssBefore = process.memoryUsage().rss;
    const startedAt = performance.now();
    const server = await startLargeServer();
    const proxy = await startProxy({
      UPSTREAM_URL: server.url,
      MIRROR_PREFIXES: '21.T1',
      CACHE_MAX_BYTES: '2GiB',
    });
    const readingsOf = async (metric: string) =>
      (await proxy.metrics()).find(({ name }) => name === `handle_proxy_${metric}`)?.values ?? [];
    const recordsAge = async () =>
      (await readingsOf('mirror_age_seconds')).find(({ labels }) => labels['part'] === 'records')?.value;
    await expect.poll(recordsAge, { timeout: 60_000 + COUNT * 30 }).toBe(0);
    const seconds = (performance.now() - startedAt) / 1000;
    const found = (await readingsOf('cache_entries')).find(({ labels }) => labels['store'] === 'found');
    const bytes = (await readingsOf('cache_bytes')).find(({ labels }) => labels['store'] === 'found')?.value;
    expect(found?.value).toBe(COUNT);
    // The probe at the start and the pages of the list add requests.
    expect(server.requests()).toBeGreaterThanOrEqual(COUNT);
    expect(server.requests()).toBeLessThan(COUNT + 10 + COUNT / PAGE_SIZE);
    if (MIRROR_HANDLES === undefined) return;
    const rssMiB = (process.memoryUsage().rss - rssBefore) / 2 ** 20;
    const perSecond = Math.round(server.requests() / seconds);
    process.stdout.write(
      `${COUNT} handles in ${seconds.toFixed(1)} s, ${perSecond} requests per second, ` +
        `cache ${((bytes ?? 0) / 2 ** 20).toFixed(1)} MiB, RSS +${rssMiB.toFixed(0)} MiB\n`,
    );
  });
});
