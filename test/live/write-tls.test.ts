// Writes to an upstream over TLS, with a pinned and with an untrusted certificate.
import '../support/real-sockets.js';
import { describe, expect, test } from 'vitest';
import { createCertificate } from '../support/certificate.js';
import { startDemoServer } from '../support/demo.js';
import { numberIn, putNumbered } from '../support/demo-writes.js';
import { startProxy } from '../support/proxy.js';

const certificate = await createCertificate();
const demo = await startDemoServer({ tls: certificate });
const PATH = '/api/handles/21.T11998/tls';

describe('write over upstream TLS', () => {
  test('is sent to a server with the pinned certificate', async () => {
    const proxy = await startProxy({ UPSTREAM_URL: demo.url, UPSTREAM_FINGERPRINT: certificate.fingerprint });
    for (const [count, status] of [
      [1, 201],
      [2, 200],
    ] as const) {
      expect((await putNumbered(proxy.url, PATH, count)).status).toBe(status);
      expect(numberIn(await proxy.ask(PATH))).toBe(count);
    }
  });

  test.each([
    ['that is not the pinned one', { UPSTREAM_FINGERPRINT: 'AB'.repeat(32) }],
    ['from an unknown authority', {}],
  ])('is not sent to a server with a certificate %s, and returns 502', async (_what, env) => {
    demo.reset();
    const proxy = await startProxy({ UPSTREAM_URL: demo.url, ...env });
    expect((await putNumbered(proxy.url, PATH, 3)).status).toBe(502);
    expect(demo.asked).toBe(0);
  });
});
