// A mirrored prefix of a DSpace repository, which lists without pages and without a login.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { fixed } from '../support/fixed.js';
import { startProxy } from '../support/proxy.js';

const pageOf = (id: string): string => `https://ui.repository.test/${id}`;

/** Starts the Handle resolver of a DSpace backend, whose items a test may change. */
async function startDspace() {
  const pages = new Map(['123456/1', '123456/b', '123456/A'].map((name) => [name, pageOf(name)]));
  let isAway = false;
  let lists = 0;
  const server = createServer((req, res) => {
    const [, kind, name = ''] = /^\/server\/(\w+)\/(.*)$/.exec(decodeURIComponent(req.url ?? '')) ?? [];
    const page = pages.get(name);
    const resolved = page === undefined ? null : [page];
    if (kind === 'listhandles') lists++;
    res.writeHead(isAway ? 503 : 200, { 'Content-Type': 'application/json' });
    res.end(JSON.stringify(kind === 'listhandles' ? [...pages.keys()] : resolved));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/server`;
  const setAway = (): void => {
    isAway = true;
  };
  return { pages, setAway, url, lists: () => lists };
}

const openMirror = ({ url }: { url: string }) =>
  startProxy({
    UPSTREAMS: JSON.stringify([{ prefixes: '123456', kind: 'dspace', url }]),
    UPSTREAM_RETRY_AFTER: '0s',
    ...fixed({ upstream: { breaker: { openForMs: 10 } } }),
    MIRROR_PREFIXES: '123456',
    MIRROR_INTERVAL: '1s',
  });

async function startMirror(dspace: { url: string }) {
  const proxy = await openMirror(dspace);
  const ask = (path: string) => proxy.ask(`/api/handles${path}`);
  const list = async () => JSON.parse((await ask('?prefix=123456')).text) as { handles: string[] };
  const isCopied = async (): Promise<boolean> => {
    const ages = (await proxy.metrics()).find(({ name }) => name === 'handle_proxy_mirror_age_seconds');
    return ages?.values.find(({ labels }) => labels['part'] === 'records')?.value === 0;
  };
  await expect.poll(isCopied).toBe(true);
  return { ...proxy, ask, list };
}

describe('a mirrored DSpace', () => {
  it('is listed from the mirror in its own order, in pages too', async () => {
    const dspace = await startDspace();
    const { ask, list } = await startMirror(dspace);
    expect((await list()).handles).toEqual(['123456/1', '123456/b', '123456/A']);
    const { text, headers } = await ask('?prefix=123456&page=1&pageSize=2');
    expect(text).toBe(
      '{"responseCode":1,"prefix":"123456","totalCount":"3","page":1,"pageSize":2,"handles":["123456/A"]}',
    );
    expect(headers['cache-status']).toBe('handle-resolver-proxy; hit; detail=mirror');
  });

  it('is listed in one request, however many handles it has', async () => {
    const dspace = await startDspace();
    for (let at = 0; at < 10_001; at++) dspace.pages.set(`123456/${at}`, pageOf('same'));
    const proxy = await openMirror(dspace);
    const listed = async () =>
      (await proxy.metrics())
        .find(({ name }) => name === 'handle_proxy_mirror_handles')
        ?.values.find(({ labels }) => labels['state'] === 'listed')?.value;
    await expect.poll(listed).toBe(dspace.pages.size);
    expect(dspace.lists()).toBe(1);
  });

  it('shows a changed, a new and a deleted item after the interval', async () => {
    const dspace = await startDspace();
    const { ask, list, pass } = await startMirror(dspace);
    dspace.pages.set('123456/1', pageOf('moved'));
    dspace.pages.set('123456/2', pageOf('new'));
    dspace.pages.delete('123456/A');
    pass(1000);
    await expect.poll(async () => (await ask('/123456/1')).text).toContain(pageOf('moved'));
    await expect.poll(async () => (await ask('/123456/A')).status).toBe(404);
    await expect.poll(async () => (await list()).handles).toEqual(['123456/1', '123456/b', '123456/2']);
    expect((await ask('/123456/2')).text).toContain(pageOf('new'));
  });

  it('serves every handle and the list during an outage of any length', async () => {
    const dspace = await startDspace();
    const { ask, list, pass } = await startMirror(dspace);
    dspace.setAway();
    pass(1000 * 86_400_000);
    for (const name of dspace.pages.keys())
      await expect(ask(`/${name}`)).resolves.toMatchObject({ status: 200 });
    expect((await list()).handles).toEqual([...dspace.pages.keys()]);
    expect((await ask('/123456/unknown')).status).toBeGreaterThanOrEqual(502);
  });
});
