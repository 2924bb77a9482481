// A start that fails leaves nothing open, so that a program that embeds the proxy can go on or end.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { Host } from '../../src/host.js';
import type { Plugin } from '../../src/plugin.js';
import { newFolder } from '../support/folder.js';
import { useNock } from '../support/nock.js';
import { openProxy } from '../support/proxy.js';
import { snapshotOf } from '../support/snapshot.js';

useNock();

const pluginOf = (name: string, start: (host: Host) => object): Plugin => ({
  name,
  isEnabled: () => true,
  load: () => Promise.resolve({ start }),
});

test('a plugin that cannot start closes the cache, the servers and the plugins before it', async () => {
  const closed: string[] = [];
  const before = pluginOf('before', ({ cache, upstreams }) => {
    vi.spyOn(cache, 'close').mockImplementation(() => Promise.resolve(void closed.push('cache')));
    vi.spyOn(upstreams, 'close').mockImplementation(() => Promise.resolve(void closed.push('upstreams')));
    return { close: () => void closed.push('before') };
  });
  const failing = pluginOf('failing', () => {
    throw new Error('no such file');
  });
  await expect(openProxy({}, { plugins: [before, failing] })).rejects.toThrow('no such file');
  expect(closed.sort()).toEqual(['before', 'cache', 'upstreams']);
});

test('a start that fails keeps the snapshot of another configuration', async () => {
  const file = join(newFolder(), 'snapshot');
  await snapshotOf(file);
  const before = readFileSync(file);
  const env = {
    CACHE_SNAPSHOT_FILE: file,
    UPSTREAM_URL: 'http://another.test:8000',
    REDIRECT_LOCATIONS_FILE: '/nonexistent/locations.yaml',
  };
  await expect(openProxy(env)).rejects.toThrow('/nonexistent/locations.yaml');
  expect(readFileSync(file).equals(before)).toBe(true);
});

test('without the file of upstream.caFile, the proxy does not connect to Redis', async () => {
  let connections = 0;
  const redis = createServer((socket) => {
    connections++;
    socket.end();
  }).listen(0, '127.0.0.1');
  await once(redis, 'listening');
  onTestFinished(() => void redis.close());
  const { port } = redis.address() as AddressInfo;
  const env = { UPSTREAM_CA_FILE: '/nonexistent/ca.pem', REDIS_URL: `redis://127.0.0.1:${port}` };
  await expect(openProxy(env)).rejects.toThrow('/nonexistent/ca.pem');
  // A connection of the proxy would be accepted before this one.
  const own = connect(port, '127.0.0.1');
  await once(own, 'close');
  expect(connections).toBe(1);
});
