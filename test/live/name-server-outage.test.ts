// Handle servers whose host name cannot be looked up while no name server responds.
import '../support/real-sockets.js';
import dns from 'node:dns';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { createCertificate } from '../support/certificate.js';
import { startDemoServer } from '../support/demo.js';
import { numberIn, putNumbered } from '../support/demo-writes.js';
import { startProxy } from '../support/proxy.js';

const certificate = await createCertificate();
type Found = (error: Error | null, addresses: readonly object[]) => void;

const HANDLE = '/api/handles/21.T11998/NAMED';

/** Returns the reply to lookups of names of example.org, until the test ends. */
function nameServer(): { error: Error | null } {
  const reply = { error: null };
  const { lookup } = dns;
  const spy = vi.spyOn(dns, 'lookup') as unknown as { mockImplementation: (fake: unknown) => void };
  spy.mockImplementation((host: string, ...given: [object, Found]) => {
    if (host.endsWith('.example.org')) given[1](reply.error, [{ address: '127.0.0.1', family: 4 }]);
    else Reflect.apply(lookup, dns, [host, ...given]);
  });
  onTestFinished(() => void vi.restoreAllMocks());
  return reply;
}

describe.each([
  ['http', undefined],
  ['https', certificate],
])('a Handle server named by an %s URL', (_scheme, tls) => {
  test('is read and written during an outage of the name servers, once its name was looked up', async () => {
    const { url } = await startDemoServer(tls && { tls });
    const env = {
      UPSTREAM_URL: url.replace('127.0.0.1', `${tls ? 'tls' : 'plain'}.example.org`),
      ...(tls && { UPSTREAM_FINGERPRINT: tls.fingerprint }),
    };
    const reply = nameServer();
    const before = await startProxy(env);
    expect((await before.ask('/api/handles/21.T11998/DEMO')).status).toBe(200);
    reply.error = Object.assign(new Error('outage'), { code: 'EAI_AGAIN' });
    // Without open connections.
    const proxy = await startProxy(env);
    expect((await proxy.ask('/api/handles/21.T11998/DEMO')).status).toBe(200);
    expect((await putNumbered(proxy.url, HANDLE, 1)).status).toBe(201);
    expect(numberIn(await proxy.ask(HANDLE))).toBe(1);
  });
});
