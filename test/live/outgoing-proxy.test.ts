// The outgoing proxy of the built program: its log, an https proxy, and an address that cannot be used.
import '../support/real-sockets.js';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ask } from '../support/ask.js';
import { startBuiltProxy, startMain } from '../support/built-proxy.js';
import { createCertificate } from '../support/certificate.js';
import { startConnectProxy } from '../support/connect-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { newFolder } from '../support/folder.js';

const certificate = await createCertificate({ name: 'handle.test' });
const demo = await startDemoServer({ tls: certificate });
const UPSTREAM_URL = demo.url.replace('127.0.0.1', 'handle.test');

describe('outgoing proxy of the built program', () => {
  test('carries reads and probes over TLS to the proxy, and is logged once without its password', async () => {
    const outgoing = await startConnectProxy(200, certificate);
    const authority = join(newFolder(), 'ca.pem');
    writeFileSync(authority, certificate.cert);
    const HTTPS_PROXY = outgoing.url.replace('//', '//user:hunter2@');
    const env = { UPSTREAM_URL, HTTPS_PROXY, NODE_EXTRA_CA_CERTS: authority };
    const proxy = await startBuiltProxy(env);
    expect((await ask(proxy.url, '/api/handles/21.T11998/page')).status).toBe(200);
    await proxy.stop();
    const lines = proxy.logs().filter(({ msg }) => msg === 'outgoing connections use a proxy');
    expect(lines).toEqual([expect.objectContaining({ HTTPS_PROXY: outgoing.url })]);
    expect(proxy.logs().find(({ msg }) => msg === 'probe succeeded')).toMatchObject({
      fingerprint: certificate.fingerprint,
    });
    expect(proxy.output()).not.toContain('hunter2');
    expect(new Set(outgoing.tunnels)).toEqual(new Set([new URL(UPSTREAM_URL).host]));
    expect(outgoing.logins).not.toContain(undefined);
  });

  test('with an unusable address is exit code 2, without its password', async () => {
    const { exited, stderr } = startMain({ UPSTREAM_URL, HTTPS_PROXY: 'user:hunter2@proxy.test:3128' });
    expect((await exited).code).toBe(2);
    expect(stderr()).toContain('variable HTTPS_PROXY: (hidden) is not allowed; give an http://');
    expect(stderr()).not.toContain('hunter2');
  });
});
