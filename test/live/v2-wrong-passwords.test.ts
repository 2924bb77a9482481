// Hundreds of clients with a wrong password: they do not block the owner's writes.
import '../support/real-sockets.js';
import { describe, expect, test } from 'vitest';
import { startBuiltProxy } from '../support/built-proxy.js';
import { basic, startDemoServer } from '../support/demo.js';
import { fixed } from '../support/fixed.js';
import { askV2, urlTo } from '../support/v2.js';

const NAME = '/21.T11998/wanted';
const WRONG = basic('300:21.T11998/USER01', 'wrong');

const demo = await startDemoServer();

describe('wrong ePIC v2 passwords', () => {
  test("do not block the owner's writes, even from 400 clients", async () => {
    // This timeout lets every read obtain a permit, even on a busy machine.
    const env = { UPSTREAM_URL: demo.url, ...fixed({ upstream: { queueTimeoutMs: 20_000 } }) };
    const v2 = askV2((await startBuiltProxy(env)).url);
    expect([201, 204]).toContain((await v2(NAME, { method: 'PUT', body: [urlTo('first')] })).status);
    let refused = 0;
    const others = Array.from({ length: 400 }, async (_, at) => {
      const { status } = await v2(NAME, { method: 'PUT', as: WRONG, body: [urlTo(`other-${at}`)] });
      refused++;
      return status;
    });
    await expect.poll(() => refused).toBeGreaterThan(0);
    const begun = performance.now();
    const { status } = await v2(NAME, { method: 'PUT', body: [urlTo('owner')] });
    process.stdout.write(`the owner's PUT took ${Math.round(performance.now() - begun)} ms\n`);
    expect(status).toBe(204);
    expect(new Set(await Promise.all(others))).toEqual(new Set([401]));
    expect((await v2(NAME)).text).toContain('https://example.org/owner');
  });
});
