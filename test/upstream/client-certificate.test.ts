// A client certificate towards a Handle server that demands one, and the diagnosis without it.
import '../support/real-sockets.js';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { keysAt } from '../../src/upstream/failure.js';
import { HANDLE_SERVER } from '../../src/upstream/handle-server.js';
import { probeServer } from '../../src/upstream/probe.js';
import { partial } from '../support/partial.js';
import { createCertificate } from '../support/certificate.js';
import { startDemoServer } from '../support/demo.js';
import { numberIn, putNumbered } from '../support/demo-writes.js';
import { itWithProgram } from '../support/programs.js';
import { startProxy } from '../support/proxy.js';

const server = await createCertificate();
const client = await createCertificate();
const { cert, key } = await createCertificate();
const demanding = { ...server, ca: client.cert, requestCert: true, rejectUnauthorized: true };
const demo = await startDemoServer({ tls: demanding });
const olderTls = { ...demanding, maxVersion: 'TLSv1.2' };
const older = await startDemoServer({ tls: olderTls });
const PATH = '/api/handles/21.T11998/client';

const folder = mkdtempSync(join(tmpdir(), 'client-certificate-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});
function fileOf(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const CLIENT = {
  UPSTREAM_CLIENT_CERTIFICATE_FILE: fileOf('client.pem', client.cert),
  UPSTREAM_CLIENT_KEY_FILE: fileOf('client.key', client.key),
};
const ROOT = fileOf('ca.pem', server.cert);

describe('client certificate', () => {
  test.each([
    ['TLS 1.3', demo, { UPSTREAM_CA_FILE: ROOT }],
    ['TLS 1.2', older, { UPSTREAM_CA_FILE: ROOT }],
    ['a pinned server certificate', demo, { UPSTREAM_FINGERPRINT: server.fingerprint }],
  ])('is shown for reads and writes, with %s', async (_with, { url }, trust) => {
    const proxy = await startProxy({ UPSTREAM_URL: url, ...trust, ...CLIENT });
    expect([200, 201]).toContain((await putNumbered(proxy.url, PATH, 1)).status);
    expect(numberIn(await proxy.ask(PATH))).toBe(1);
  });

  test('is shown to one server of several', async () => {
    const own = {
      ...{ prefixes: ['21.T11998'], url: demo.url, fingerprint: server.fingerprint },
      clientCertificateFile: CLIENT.UPSTREAM_CLIENT_CERTIFICATE_FILE,
      clientKeyFile: CLIENT.UPSTREAM_CLIENT_KEY_FILE,
    };
    const other = { prefixes: ['*'], url: older.url, fingerprint: server.fingerprint };
    const proxy = await startProxy({ UPSTREAMS: JSON.stringify([own, other]) });
    expect((await proxy.ask('/api/handles/21.T11998/page')).status).toBe(200);
    expect((await proxy.ask('/api/handles/99.OTHER/page')).status).toBe(502);
  });
});

const probe = (url: string, trust: { cert?: string; key?: string } = {}) => {
  const question = HANDLE_SERVER.protocol(partial({ url, prefixes: [] })).probe('0.NA/0.NA');
  const limits = { timeoutMs: 10_000, maxBodyBytes: 100_000, staleAfterMs: 10_000 };
  const keys = keysAt({ key: 'upstream', url }, url);
  const given = { url, question, keys, pseudonym: 'test', fingerprint: server.fingerprint };
  return probeServer(
    { ...given, ...limits, ...trust },
    {
      signal: new AbortController().signal,
      onAnswered: () => undefined,
    },
  );
};

const KEYS = 'set upstream.clientCertificateFile and upstream.clientKeyFile';

describe('server that demands a client certificate', () => {
  test.each([
    ['TLS 1.3', demo, 'the server demands a client certificate', KEYS],
    ['TLS 1.2', older, 'the server ended the TLS handshake', `if it demands a client certificate, ${KEYS}`],
  ])('is named with the keys to set (%s)', async (_version, { url }, cause, remedy) => {
    const { failure } = await probe(url);
    expect(failure?.cause).toContain(cause);
    expect(failure?.remedy).toContain(remedy);
  });

  test.each([
    ['TLS 1.3', demo],
    ['TLS 1.2', older],
  ])('has certainly not executed a write (%s)', async (_version, { url }) => {
    const proxy = await startProxy({ UPSTREAM_URL: url, UPSTREAM_FINGERPRINT: server.fingerprint });
    const { status, text } = await putNumbered(proxy.url, PATH, 2);
    expect([status, text]).toEqual([502, expect.stringContaining('UPSTREAM_CONNECT_FAILED')]);
    expect((await proxy.ask(PATH)).status).toBe(502);
  });

  itWithProgram('openssl', 'is named when it refuses the certificate', async () => {
    const args = ['-accept', '127.0.0.1:0', '-cert', ROOT, '-key', fileOf('server.key', server.key), '-www'];
    const judging = [
      '-CAfile',
      CLIENT.UPSTREAM_CLIENT_CERTIFICATE_FILE,
      '-Verify',
      '1',
      '-verify_return_error',
    ];
    const child = spawn('openssl', ['s_server', ...args, ...judging], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    onTestFinished(async () => {
      const exited = once(child, 'exit');
      child.kill();
      await exited;
    });
    let port = '';
    for await (const line of createInterface(child.stdout)) {
      port = /^ACCEPT .*:(\d+)$/.exec(line)?.[1] ?? '';
      if (port !== '') break;
    }
    const { failure } = await probe(`https://127.0.0.1:${port}`, { cert, key });
    expect(failure).toMatchObject({
      cause: expect.stringContaining(
        'the server does not know the authority of the client certificate',
      ) as string,
      remedy: `${KEYS}, to a certificate that it accepts`,
    });
  });
});
