// Writes to an upstream over TLS, with a pinned and with an untrusted certificate.
import '../support/real-sockets.js';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
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

  test('causes no warning of Node.js while many others are in flight', async () => {
    const warnings: string[] = [];
    const onWarning = ({ message }: Error): unknown => warnings.push(message);
    process.on('warning', onWarning);
    onTestFinished(() => void process.off('warning', onWarning));
    const proxy = await startProxy({ UPSTREAM_URL: demo.url, UPSTREAM_FINGERPRINT: certificate.fingerprint });
    demo.hold.holdReplies('PUT');
    const writes = Array.from({ length: 12 }, (_, at) => putNumbered(proxy.url, `${PATH}-${at}`, at));
    await expect.poll(() => demo.hold.size).toBe(12);
    demo.hold.sendHeld('PUT');
    for (const { status } of await Promise.all(writes)) expect(status).toBe(201);
    expect(warnings).toEqual([]);
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

  test.each([
    ['text', 'HTTP/1.1 403 Forbidden\r\n\r\n'],
    ['a record that is too long', '\x17\x03\x03\xff\xff\x01\x02\x03'],
  ])('may be stored if %s comes instead of the response', async (_what, bytes) => {
    const middle = await startMiddlebox(bytes);
    const proxy = await startProxy({
      UPSTREAM_URL: middle.url,
      UPSTREAM_FINGERPRINT: certificate.fingerprint,
    });
    expect((await putNumbered(proxy.url, PATH, 4)).status).toBeLessThan(300);
    expect(numberIn(await proxy.ask(PATH))).toBe(4);
    middle.interrupt();
    expect((await putNumbered(proxy.url, PATH, 5)).status).toBe(502);
    middle.heal();
    expect(numberIn(await proxy.ask(PATH))).toBe(5);
  });
});

/** Starts a relay to the server, which sends `bytes` instead of the next response. */
async function startMiddlebox(bytes: string) {
  let askedBefore = Infinity;
  const relay = createServer((client) => {
    const server = connect(Number(new URL(demo.url).port), '127.0.0.1');
    client.pipe(server).on('error', () => undefined);
    client.on('error', () => undefined).on('close', () => server.destroy());
    server.on('close', () => client.destroy());
    server.on('data', (sent) => {
      client.write(demo.asked > askedBefore ? Buffer.from(bytes, 'latin1') : sent);
    });
  });
  relay.listen(0, '127.0.0.1');
  await once(relay, 'listening');
  onTestFinished(() => void relay.close());
  return {
    url: `https://127.0.0.1:${(relay.address() as AddressInfo).port}`,
    interrupt: () => (askedBefore = demo.asked),
    heal: () => (askedBefore = Infinity),
  };
}
