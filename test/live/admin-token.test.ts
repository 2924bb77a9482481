// The admin token: required on every admin request, and for an admin address that is not loopback.
import { describe, expect, test } from 'vitest';
import { ask } from '../support/ask.js';
import { startBuiltProxy, startMain } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';

const demo = await startDemoServer();
const ADMIN_TOKEN = 'a token nobody guesses'.replaceAll(' ', '-');

describe('admin token of the built program', () => {
  test('is required at startup if the admin address is not a loopback address (exit code 2)', async () => {
    const { exited, stdout, stderr } = startMain({ UPSTREAM_URL: demo.url, ADMIN_HOST: '0.0.0.0' });
    expect(await exited).toEqual({ code: 2, signal: null });
    expect(stderr()).toContain('"0.0.0.0" is not allowed; set admin.token');
    expect(stdout(), 'nothing was said to listen').toBe('');
  });

  test('is required in every request', async () => {
    const proxy = await startBuiltProxy({
      UPSTREAM_URL: demo.url,
      ADMIN_HOST: '0.0.0.0',
      ADMIN_TOKEN,
      LOG_LEVEL: 'trace',
    });
    for (const path of ['/metrics', '/stats', '/nothing']) {
      for (const headers of [{}, { Authorization: `Bearer ${ADMIN_TOKEN}x` }]) {
        expect((await ask(proxy.adminUrl, path, { headers })).status, path).toBe(401);
      }
    }
    const headers = { Authorization: `Bearer ${ADMIN_TOKEN}` };
    expect((await ask(proxy.adminUrl, '/metrics', { headers })).status).toBe(200);
    expect((await ask(proxy.adminUrl, '/stats', { headers })).status).toBe(200);
    await proxy.stop();
    expect(proxy.output()).not.toContain(ADMIN_TOKEN);
  });
});
