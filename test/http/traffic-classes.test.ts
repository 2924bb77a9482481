// Traffic classes prioritise upstream requests on every interface.
import { describe, expect, test } from 'vitest';
import { useNock } from '../support/nock.js';
import { gate } from '../support/gate.js';
import { startProxy } from '../support/proxy.js';
import { HANDLE, mockUpstream, recordOf } from '../support/upstream.js';

useNock();

describe('traffic class', () => {
  test.each([
    ['the record interface', `/api/handles/${HANDLE}-own`],
    ['redirects', `/${HANDLE}-own`],
    ['ePIC v2', `/api/v2/handles/${HANDLE}-own`],
  ])('puts preferred clients of %s ahead of earlier clients in the queue', async (_interface, target) => {
    const { opened, open } = gate();
    const upstream = mockUpstream((asked) => ({
      ...recordOf(undefined, decodeURIComponent(asked.replace('/api/handles/', ''))),
      after: opened,
    }));
    const proxy = await startProxy({
      UPSTREAM_CONCURRENCY: '2',
      V2_ANONYMOUS_READ: 'true',
      HTTP_TRUSTED_PROXIES: 'loopback',
      TRAFFIC_RULES: JSON.stringify([
        { name: 'own', match: { network: '192.0.2.0/24' }, class: 'preferred' },
      ]),
    });
    const waiting = async (): Promise<number> => (await proxy.app.operations.stats()).upstream.queued;
    const from = (address: string, path: string) =>
      proxy.ask(path, { headers: { 'X-Forwarded-For': address } });

    const others = ['-a', '-b', '-c', '-d'].map((suffix, at) =>
      from(`198.51.${at}.1`, `/api/handles/${HANDLE}${suffix}`),
    );
    await expect.poll(waiting).toBe(2);
    const own = from('192.0.2.1', target);
    await expect.poll(waiting).toBe(3);
    open();
    await Promise.all([...others, own]);
    const asked = upstream.targets.map((path) => path.slice(path.lastIndexOf('-')));
    expect(asked.indexOf('-own')).toBe(2);
  });
});
