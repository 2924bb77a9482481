// A purge during a load: later callers start a new load, which they share.
import { expect, it } from 'vitest';
import type { Outcome } from '../../src/handle/outcome.js';
import type { Plugin } from '../../src/plugin.js';
import { startProxy } from '../support/proxy.js';
import { UPSTREAM_URL } from '../support/upstream.js';

const FOREIGN = '99.FAR/page';
const env = { UPSTREAMS: JSON.stringify([{ prefixes: '21.T11998', url: UPSTREAM_URL }]) };

it.each<[string, boolean, { handles: string[] } | { prefix: string }]>([
  ['with other servers, after the purge of a handle', false, { handles: [FOREIGN] }],
  ['with configured servers only, after the purge of a handle', true, { handles: [FOREIGN] }],
  ['with configured servers only, after the purge of a prefix', true, { prefix: '99.FAR' }],
])('callers share a load %s, but start a new load', async (_what, noFallback, purged) => {
  const loads: ((outcome: Outcome) => void)[] = [];
  const plugin: Plugin = {
    name: 'example',
    isEnabled: () => true,
    load: () =>
      Promise.resolve({ start: () => ({ read: () => new Promise((resolve) => void loads.push(resolve)) }) }),
  };
  const proxy = await startProxy(env, { plugins: [plugin] });
  const { host, operations } = proxy.app;
  const read = () =>
    host.resolver.resolve(host.refOf(FOREIGN), { authoritative: false, noFallback, caller: undefined });
  const before = [read(), read()];
  await operations.purge({ prefix: '99.OTHER', isSoft: false });
  before.push(read());
  expect(loads).toHaveLength(1);
  await operations.purge({ ...purged, isSoft: false });
  const after = [read()];
  loads[0]?.({ kind: 'not-found' });
  await Promise.all(before);
  after.push(read());
  expect(loads).toHaveLength(2);
  loads[1]?.({ kind: 'not-found' });
  for (const { kind } of await Promise.all(after)) expect(kind).toBe('entry');
});
