// Initial records of the demo server: every kind that a resolver encounters, and users who can log in.
import { describe, expect, it } from 'vitest';
import { DEMO_PASSWORD } from '../../src/dev-server/seed.js';
import { basic, startDemoServer } from '../support/demo.js';

const now = Date.parse('2026-01-01T00:00:00Z');
const server = await startDemoServer({ now: () => now });
const user01 = basic('300:21.T11998/USER01', DEMO_PASSWORD);

const ask = (suffix: string, init?: RequestInit): Promise<Response> =>
  fetch(`${server.url}/api/handles/21.T11998/${suffix}`, init);

describe('demo records', () => {
  it.each([
    ['page', { values: [{ type: 'URL' }, { type: 'HS_ADMIN' }] }],
    ['DEMO?type=URL.', { values: [{ type: 'URL' }, { type: 'URL.MIRROR' }] }],
    ['located?index=1', { values: [{ type: '10320/loc' }] }],
    ['alias?index=1', { values: [{ type: 'HS_ALIAS', data: { value: '21.T11998/page' } }] }],
    [encodeURIComponent('größe-漢字') + '?type=DESC', { values: [{ data: { value: 'Größe — 漢字 😀' } }] }],
    ['folder/of%20things+more;v=1?index=1', { values: [{ type: 'URL' }] }],
    ['binary?index=2', { values: [{ data: { format: 'base64' } }] }],
    ['short-lived', { values: [{ ttl: 5 }, { ttl: 5 }] }],
    ['uncached?index=1', { values: [{ ttl: 0 }] }],
    ['until-then?index=1', { values: [{ ttl: '2026-01-01T01:00:00Z' }] }],
    ['empty', { responseCode: 200, values: [] }],
  ])('include %s', async (suffix, expected) => {
    expect(await (await ask(suffix)).json()).toMatchObject(expected);
  });

  it('hide a private value from anonymous readers', async () => {
    const { values } = (await (await ask('private')).json()) as { values: { type: string }[] };
    expect(values.map(({ type }) => type)).toEqual(['URL', 'HS_ADMIN']);
  });

  it('show a private value to the demo user', async () => {
    const response = await ask('private?type=NOTE', { headers: { authorization: user01 } });
    expect(await response.json()).toMatchObject({ values: [{ permissions: '1100' }] });
  });

  it('are writable by the demo user over plain HTTP', async () => {
    const response = await ask('new', {
      method: 'PUT',
      headers: { authorization: user01, 'content-type': 'application/json' },
      body: JSON.stringify([{ index: 1, type: 'URL', data: 'https://example.org/new' }]),
    });
    expect(response.status).toBe(201);
    expect((await ask('new')).status).toBe(200);
  });

  it('are not writable by the second user', async () => {
    const authorization = basic('300:21.T11998/USER02', 'secret2');
    expect((await ask('page', { method: 'DELETE', headers: { authorization } })).status).toBe(403);
  });
});
