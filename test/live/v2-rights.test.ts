// ePIC v2 over real sockets: the Handle server decides on logins and permissions.
import nock from 'nock';
import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { startDemoServer } from '../support/demo.js';
import { startProxy } from '../support/proxy.js';
import { type AskV2, USER02, askV2, gist, read, urlTo } from '../support/v2.js';

nock.restore();

const demo = await startDemoServer();

async function start(env: Record<string, string> = {}): Promise<{ v2: AskV2 }> {
  const proxy = await startProxy({ UPSTREAM_URL: demo.url, ...env });
  return { v2: askV2(proxy.url) };
}

const newName = (): string => `21.T11998/V2-${randomUUID().toUpperCase()}`;

describe('ePIC v2 permissions', () => {
  test.each(['GET', 'PUT', 'DELETE'])(
    'are denied for a wrong password, with 401 and a challenge (%s)',
    async (method) => {
      const { v2 } = await start({ DELETION_HANDLES: 'true' });
      const as = `Basic ${Buffer.from('300%3A21.T11998/USER01:wrong').toString('base64')}`;
      const answer = await v2('/21.T11998/page', {
        method,
        as,
        ...(method === 'PUT' && { body: [urlTo('x')] }),
      });
      expect([answer.status, answer.headers['www-authenticate']]).toEqual([401, 'Basic realm="handle"']);
    },
  );

  test("let a user read but not change a different user's handle", async () => {
    const { v2 } = await start({ DELETION_HANDLES: 'true' });
    expect((await v2('/21.T11998/private', { as: USER02 })).status).toBe(200);
    const put = await v2('/21.T11998/private', { method: 'PUT', as: USER02, body: [urlTo('mine')] });
    expect([put.status, (read(put) as { code: string }).code]).toEqual([403, 'V2_FORBIDDEN']);
    expect((await v2('/21.T11998/private', { method: 'DELETE', as: USER02 })).status).toBe(403);
    expect(gist(await v2('/21.T11998/private'))[0]).toEqual([1, 'URL', 'https://example.org/private']);
  });

  test('apply to a name in v2.identities as they do to its identity', async () => {
    const { v2 } = await start({ V2_IDENTITIES: 'alice=300:21.T11998/USER01' });
    const as = `Basic ${Buffer.from('alice:password').toString('base64')}`;
    expect((await v2(`/${newName()}`, { method: 'PUT', as, body: [urlTo('x')] })).status).toBe(201);
    const unknown = `Basic ${Buffer.from('bob:password').toString('base64')}`;
    expect((await v2('/21.T11998/page', { as: unknown })).status).toBe(401);
  });
});
