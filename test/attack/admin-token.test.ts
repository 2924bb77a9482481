// Access control of the admin listener: it rejects clients without the token, and requests from cross-origin
// pages.
import request from 'supertest';
import { describe, expect, it, test } from 'vitest';
import { createAdminAlone } from '../support/admin.js';
import { configFrom, problemsFrom } from '../support/load-config.js';

const TOKEN = 'correct-horse-battery:staple';
const admin = (token?: string) => request(createAdminAlone({ token }));
const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`;

describe('admin listener with a token', () => {
  it.each([undefined, '', TOKEN, 'Bearer', 'Bearer ', `Bearer ${TOKEN}x`, `Bearer ${TOKEN.slice(1)}`])(
    'returns 401 with WWW-Authenticate for Authorization %j',
    async (authorization) => {
      for (const path of ['/metrics', '/stats', '/nothing', '/healthz/', '/metrics/../healthz']) {
        const asked = admin(TOKEN).get(path);
        const answer = await (authorization === undefined ? asked : asked.set({ authorization }));
        expect(answer.status, path).toBe(401);
        expect(answer.headers['www-authenticate']).toContain('Bearer');
        expect(answer.headers['content-type']).toContain('application/problem+json');
        expect(answer.text).not.toContain(TOKEN);
        expect(answer.text).not.toMatch(/uptime|handle_proxy/);
      }
    },
  );

  it.each(['admin:wrong', TOKEN, `x${TOKEN}:`, `:${TOKEN}x`])('returns 401 for Basic %s', async (text) => {
    await admin(TOKEN)
      .get('/stats')
      .set({ authorization: basic(text) })
      .expect(401);
  });

  it.each([`Bearer ${TOKEN}`, `bearer ${TOKEN}`, basic(`admin:${TOKEN}`), basic(`:${TOKEN}`)])(
    'accepts a client with the token (%#)',
    async (authorization) => {
      await admin(TOKEN).get('/stats').set({ authorization, host: 'proxy.example:9090' }).expect(200);
    },
  );

  it.each(['/healthz', '/readyz'])('serves the probe %s to a client that sends no token', async (path) => {
    await admin(TOKEN).get(path).set({ host: '10.1.2.3:9090' }).expect(200);
    await admin(TOKEN).head(path).expect(200);
    await admin(TOKEN).post(path).expect(401);
  });

  it('rejects a cross-origin request that carries the token', async () => {
    const authorization = `Bearer ${TOKEN}`;
    const ours = { authorization, host: 'proxy.example:9090' };
    await admin(TOKEN)
      .post('/stats')
      .set({ ...ours, origin: 'https://evil.example' })
      .expect(403);
    await admin(TOKEN)
      .get('/stats')
      .set({ ...ours, 'sec-fetch-site': 'cross-site' })
      .expect(403);
    await admin(TOKEN)
      .get('/stats')
      .set({ ...ours, origin: 'http://proxy.example:9090' })
      .expect(200);
    await admin(TOKEN)
      .get('/stats')
      .set({ ...ours, origin: 'https://proxy.example:9090' })
      .expect(200);
  });
});

describe('admin listener without a token', () => {
  it.each(['127.0.0.1:9090', 'localhost:9090', 'LOCALHOST', '[::1]:9090', '127.1.2.3'])(
    'accepts requests for host %s',
    async (host) => {
      await admin().get('/stats').set({ host }).expect(200);
    },
  );

  it.each(['evil.example:9090', '127.0.0.1.evil.example', 'localhost.evil.example', '10.0.0.1', 'a b', ''])(
    'rejects requests for host %j (DNS rebinding)',
    async (host) => {
      const answer = await admin().get('/stats').set({ host });
      expect(answer.status).toBe(403);
      expect(answer.text).not.toContain('entries');
    },
  );

  it.each([{ origin: 'https://evil.example' }, { origin: 'null' }, { 'sec-fetch-site': 'cross-site' }])(
    'rejects cross-origin requests with %j',
    async (headers) => {
      await admin()
        .get('/stats')
        .set({ host: '127.0.0.1:9090', ...headers })
        .expect(403);
    },
  );
});

describe('admin.token at startup', () => {
  test.each(['0.0.0.0', '::', '10.0.0.1', 'proxy.example', '127.0.0.1.example', '2001:db8::1'])(
    'is required to listen on %s',
    (host) => {
      expect(problemsFrom({ env: { ADMIN_HOST: host } })).toEqual([
        expect.stringMatching(
          /^  admin\.host \(variable ADMIN_HOST\): .* set admin\.token, or give a loopback/,
        ),
      ]);
    },
  );

  test.each(['0.0.0.0', '::', 'proxy.example'])('is accepted when listening on %s', (host) => {
    expect(configFrom({ env: { ADMIN_HOST: host, ADMIN_TOKEN: TOKEN } }).admin.host).toBe(host);
  });

  test.each(['127.0.0.1', '127.1.2.3', 'localhost', '::1'])(
    'is not required to listen on the loopback address %s',
    (host) => {
      expect(configFrom({ env: { ADMIN_HOST: host } }).admin.token).toBeUndefined();
    },
  );
});
