// Handles under prefixes without a configured server are resolved through their prefix records.
import { X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import request from 'supertest';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { textValue } from '../../src/dev-server/seed.js';
import { batchTarget, elementsOf, numbered } from '../support/batch.js';
import { createCertificate } from '../support/certificate.js';
import { TimeSlicer } from '../../src/time-slicer.js';
import { basic, startDemoServer } from '../support/demo.js';
import { type FixedValues, fixed } from '../support/fixed.js';
import { newFolder } from '../support/folder.js';
import { startProxy } from '../support/proxy.js';
import { portOf, siteOf } from '../support/site-values.js';

const certificate = await createCertificate({ keyType: 'rsa' });
const jwk = new X509Certificate(certificate.cert).publicKey.export({ format: 'jwk' });

const near = await startDemoServer({ prefixes: ['21.T1'], seed: { '21.T1/page': [urlOf('near')] } });
const far = await startDemoServer({ prefixes: ['99.FAR'], seed: { '99.FAR/page': [urlOf('far')] } });
const secure = await startDemoServer({
  prefixes: ['99.TLS'],
  seed: { '99.TLS/page': [urlOf('tls')] },
  tls: certificate,
});

function urlOf(name: string) {
  return textValue(1, 'URL', `https://example.org/${name}`);
}

const ofKey = (n: unknown) => ({
  protocols: ['HTTPS'],
  publicKey: { format: 'key', value: { kty: 'RSA', n, e: jwk.e } },
});

const root = await startDemoServer({
  prefixes: ['0.NA', '0.SERV', '99.OTHER'],
  seed: {
    '0.NA/99.FAR': [siteOf(far)],
    '0.NA/99.NAMED': [siteOf(far, { attributes: [{ name: 'domain', value: 'localhost' }] })],
    '0.NA/99.TLS': [siteOf(secure, ofKey(jwk.n))],
    '0.NA/99.WRONG': [siteOf(secure, ofKey('AQAB'))],
    '0.NA/99.SERVED': [textValue(1, 'HS_SERV', '99.OTHER/service')],
    '0.NA/99.BOTH': [siteOf(far), textValue(2, 'HS_SERV', '99.OTHER/none')],
    '0.NA/99.NATIVE': [siteOf(far, { protocols: ['TCP'] })],
    '0.NA/99.PADDED': [siteOf(far), textValue(2, 'DESC', 'x'.repeat(120 * 1024))],
    '0.NA/99.LONG': [siteOf(far), textValue(2, 'DESC', 'x'.repeat(128 * 1024))],
    '0.NA/99.LINKED': [textValue(1, 'HS_SERV', '0.NA/99.LONG')],
    '0.NA/99.LOOP': [textValue(1, 'HS_SERV', '0.NA/99.LOOP')],
    '0.NA/99.SELF': [textValue(1, 'HS_SERV', '99.SELF/service')],
    '0.NA/99.ONE': [textValue(1, 'HS_SERV', '99.TWO/service')],
    '0.NA/99.TWO': [textValue(1, 'HS_SERV', '99.ONE/service')],
    '99.OTHER/service': [siteOf(far)],
  },
});

const UPSTREAMS = JSON.stringify([
  { prefixes: ['21.T1'], url: near.url },
  { prefixes: ['0.NA', '99.OTHER'], url: root.url, readOnly: true },
]);

async function start(env: Record<string, string> = {}, constants: FixedValues['upstream'] = {}) {
  for (const server of [near, far, secure, root]) server.reset();
  const settings = {
    UPSTREAM_FOLLOW_REFERRALS: 'true',
    ...fixed({
      upstream: {
        referralsToPrivateNetworks: true,
        referralPorts: [near, far, secure, root].map(portOf),
        ...constants,
      },
    }),
  };
  const proxy = await startProxy({ UPSTREAMS, ...settings, ...env });
  const read = async (handle: string, headers: Record<string, string> = {}) => {
    const { status, body } = await proxy.ask(`/api/handles/${handle}`, { headers });
    return { status, body: body.toString() };
  };
  return { ...proxy, read };
}

describe('proxy that follows referrals', () => {
  test('reads a handle at the server in its prefix record, and caches both records', async () => {
    const { read, app } = await start();
    expect(await read('99.FAR/page')).toMatchObject({ status: 200 });
    expect((await read('99.far/PAGE')).body).toContain('https://example.org/far');
    expect((await read('99.FAR/none')).status).toBe(404);
    expect([near.asked, far.asked, root.askedFor('0.NA/99.FAR')]).toEqual([0, 2, 1]);
    const { text } = await request(app.admin).get('/metrics');
    expect(text).toContain('handle_proxy_upstream_requests_total{server="referred",outcome="found"} 1');
    expect(text).not.toContain(far.url);
  });

  test('does not delay batches of one prefix while the server of another hangs', async () => {
    const { ask } = await start({ UPSTREAM_CONCURRENCY: '4' });
    far.hold.holdReplies('GET');
    const hanging = [0, 1, 2].map((at) => ask(batchTarget(numbered(5, `99.FAR/batch${at}`))));
    await expect.poll(() => far.asked).toBe(2);
    const elements = elementsOf(await ask(batchTarget(['99.TLS/page'])));
    expect(elements.map(({ status }) => status)).toEqual([200]);
    far.hold.sendHeld('GET');
    for (const { status } of await Promise.all(hanging)) expect(status).toBe(200);
  });

  test('follows a service record to its site', async () => {
    const { read } = await start();
    expect(await read('99.SERVED/page')).toMatchObject({ status: 400 });
    expect(root.askedFor('99.OTHER/service')).toBe(1);
    expect(far.asked).toBe(1);
  });

  test('reads no service record when the prefix record has a site', async () => {
    const { read } = await start();
    await read('99.BOTH/page');
    expect([far.asked, root.askedFor('99.OTHER/none')]).toEqual([1, 0]);
  });

  test('accepts only a server whose key matches its site record', async () => {
    const { read } = await start();
    expect((await read('99.TLS/page')).body).toContain('https://example.org/tls');
    expect(await read('99.WRONG/page')).toMatchObject({ status: 502 });
    expect(secure.askedFor('99.WRONG/page')).toBe(0);
  });

  test('returns 404 for a handle whose prefix has no record', async () => {
    const { read } = await start();
    expect(await read('99.NOBODY/page')).toMatchObject({ status: 404 });
  });

  test.each(['99.NATIVE', '99.LOOP'])(
    'returns 502 for %s, which refers to no HTTP server',
    async (prefix) => {
      const { read } = await start();
      expect(await read(`${prefix}/page`)).toMatchObject({ status: 502 });
      expect(far.asked).toBe(0);
    },
  );

  test('ends a read of services that refer to each other after the time limit of a server', async () => {
    const { read } = await start({ UPSTREAM_TIMEOUT: '300ms', UPSTREAM_STALE_AFTER: '200ms' });
    const reads = ['99.SELF/page', '99.SELF/service', '99.ONE/service', '99.TWO/service'].map((handle) =>
      read(handle),
    );
    for (const { status } of await Promise.all(reads)) expect(status).toBe(504);
  });

  test('bounds the reads of a prefix that wait for its service', async () => {
    const { read } = await start({ UPSTREAM_TIMEOUT: '300ms', UPSTREAM_STALE_AFTER: '200ms' }, { queue: 2 });
    const handles = ['99.SELF/1', '99.SELF/2', '99.SELF/3', '99.SELF/4'];
    const answers = await Promise.all(handles.map((handle) => read(handle)));
    expect(answers.map(({ status }) => status)).toContain(503);
    expect(await read('99.FAR/page')).toMatchObject({ status: 200 });
  });

  test.each(['99.LONG', '99.LINKED'])(
    'returns 502 for %s, whose record or service has more than 128 KiB',
    async (prefix) => {
      const { read } = await start();
      expect(await read(`${prefix}/page`)).toMatchObject({ status: 502 });
      expect(far.asked).toBe(0);
    },
  );

  test('parses a record once for all reads of its prefix, charged to their clients', async () => {
    const { read } = await start();
    const run = vi.spyOn(TimeSlicer.prototype, 'run');
    const parse = vi.spyOn(JSON, 'parse');
    onTestFinished(() => {
      run.mockRestore();
      parse.mockRestore();
    });
    /** Returns the number of parsed characters, and the clients that are charged. */
    const costOf = async (handle: string) => {
      run.mockClear();
      parse.mockClear();
      await read(handle);
      const chars = parse.mock.calls.reduce((sum, [text]) => sum + text.length, 0);
      return { chars, clients: run.mock.calls.map(([, { client }]) => client) };
    };
    const first = await costOf('99.PADDED/1');
    expect(first.clients).toContain('127.0.0.1');
    expect(first.chars).toBeGreaterThan(120 * 1024);
    expect((await costOf('99.PADDED/2')).chars).toBeLessThan(16 * 1024);
    expect(far.asked).toBe(2);
  });

  test.each(['99.FAR', '99.NAMED'])('rejects a private network address by default: %s', async (prefix) => {
    const { read } = await start({}, { referralsToPrivateNetworks: false });
    expect(await read(`${prefix}/page`)).toMatchObject({ status: 502 });
    expect(far.asked).toBe(0);
  });

  test('reads a handle at the domain of a site', async () => {
    const { read } = await start();
    expect(await read('99.NAMED/page')).toMatchObject({ status: 400 });
    expect(far.askedFor('99.NAMED/page')).toBe(1);
  });

  test('rejects a read with credentials instead of sending them to a referred server', async () => {
    const { read } = await start();
    const login = { Authorization: basic('300:21.T1/USER', 'secret') };
    expect(await read('99.FAR/page', login)).toMatchObject({ status: 400 });
    expect(far.asked).toBe(0);
  });

  test('without a configured server, answers a read with credentials as any other, and sends them nowhere', async () => {
    const { read } = await start({ UPSTREAMS: '[]', UPSTREAM_URL: 'none' }, { referralRoot: root.url });
    const login = { Authorization: basic('300:21.T1/USER', 'secret') };
    for (const handle of ['99.FAR/page', '99.FAR/page?publicOnly=false'])
      expect((await read(handle, login)).body).toContain('https://example.org/far');
    expect(far.asked).toBe(1);
  });

  test('follows a referral even when a server is configured but not responsible', async () => {
    const { read } = await start(
      { UPSTREAMS: JSON.stringify([{ prefixes: '*', url: near.url }]) },
      { referralRoot: root.url },
    );
    expect((await read('99.FAR/page')).body).toContain('https://example.org/far');
    expect((await read('21.T1/page')).body).toContain('https://example.org/near');
    expect(root.askedFor('21.T1/page')).toBe(0);
  });

  test('does not request a handle again at a failing server within upstream.retryAfter', async () => {
    const { read, pass } = await start();
    far.fail('wrong-handle', { times: 1 });
    for (let times = 0; times < 2; times++) expect(await read('99.FAR/page')).toMatchObject({ status: 502 });
    expect(far.asked).toBe(1);
    pass(5000);
    await read('99.FAR/page');
    expect(far.asked).toBe(2);
  });

  test('revalidates foreign handles from a snapshot, also without a configured server', async () => {
    const env = { UPSTREAMS: '[]', UPSTREAM_URL: 'none', CACHE_SNAPSHOT_FILE: join(newFolder(), 'snapshot') };
    const before = await start(env, { referralRoot: root.url });
    expect((await before.read('99.FAR/page')).body).toContain('https://example.org/far');
    await before.close();
    onTestFinished(() => {
      far.put('99.FAR/page', [urlOf('far')]);
    });
    far.put('99.FAR/page', [urlOf('changed')]);
    const after = await start(env, { referralRoot: root.url });
    await after.app.host.whenRestored();
    expect(await after.app.operations.inspect('99.FAR/page')).toMatchObject([{ state: 'stale' }]);
    expect((await after.read('99.FAR/page')).body).toContain('https://example.org/changed');
  });

  test('follows no referral of a prefix with kind: none, whose records are only here', async () => {
    const own = [{ prefixes: '99.FAR', kind: 'none' }, ...(JSON.parse(UPSTREAMS) as object[])];
    const { read } = await start({ UPSTREAMS: JSON.stringify(own) });
    expect(await read('99.FAR/page')).toMatchObject({ status: 400 });
    expect([root.asked, far.asked]).toEqual([0, 0]);
  });

  test('follows no referral when upstream.followReferrals is false', async () => {
    const { read } = await start({ UPSTREAM_FOLLOW_REFERRALS: 'false' });
    expect(await read('99.FAR/page')).toMatchObject({ status: 400 });
    expect(root.asked).toBe(0);
  });
});
