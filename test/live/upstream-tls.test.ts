// Trust of upstream connections: public CAs, a configured CA, or a pinned certificate.
import type http from 'node:http';
import https from 'node:https';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Diagnosis, ServiceError } from '../../src/errors.js';
import type { Trust } from '../../src/upstream/connections.js';
import { type Certificate, createCertificate } from '../support/certificate.js';
import { listenHttp, listenTls, type Loopback, openConnections, openClient } from './upstream-loopback.js';

let certificate: Certificate;
let other: Certificate;

beforeAll(async () => {
  certificate = await createCertificate();
  other = await createCertificate();
});

/** Sends a request over the write agent, and returns the status or the error code. */
function write({ url, agent }: { url: string; agent: http.Agent }): Promise<number | string> {
  return new Promise((answered) => {
    const request = https.request(`${url}/api/handles/21.T1/a`, { agent, method: 'PUT' }, (response) => {
      response.resume().on('end', () => {
        answered(response.statusCode ?? 0);
      });
    });
    request.on('error', (error: NodeJS.ErrnoException) => {
      answered(error.code ?? error.message);
    });
    request.end('{"values":[]}');
  });
}

async function readAndWrite(server: Loopback, trust: Trust): Promise<[unknown, number | string]> {
  const { resolve } = openClient({ url: server.url, ...trust });
  const { writeAgent } = openConnections({ url: server.url, connections: 4, ...trust });
  const read = await resolve().catch((error: unknown) => error);
  return [read, await write({ url: server.url, agent: writeAgent })];
}

const REACHED = [{ kind: 'not-found' }, 404];
const BOTH_ASKED = 'GET /api/handles/21.T1/a\nPUT /api/handles/21.T1/a\n';

const refusedAs = (code: string): unknown[] => [
  expect.objectContaining({
    code: 'UPSTREAM_UNREACHABLE',
    diagnosis: expect.objectContaining({ cause: expect.stringContaining(code) as string }) as Diagnosis,
  }),
  code,
];

describe('upstream TLS', () => {
  test('rejects a self-signed certificate, and names the keys to set', async () => {
    const server = await listenTls(certificate);
    const [read, written] = await readAndWrite(server, {});
    expect([read, written]).toEqual(refusedAs('DEPTH_ZERO_SELF_SIGNED_CERT'));
    expect((read as ServiceError).diagnosis?.remedy).toBe('set upstream.caFile or upstream.fingerprint');
    expect(server.received()).toBe('');
    expect(server.connections()).toBe(2);
  });

  test.each(['TLSv1', 'TLSv1.1'] as const)(
    'names the version that a server with %s lacks',
    async (version) => {
      const ciphers = 'DEFAULT@SECLEVEL=0';
      const server = await listenTls(certificate, { minVersion: version, maxVersion: version, ciphers });
      const [read, written] = await readAndWrite(server, { ca: certificate.cert });
      expect([read, written]).toEqual(refusedAs('ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION'));
      expect((read as ServiceError).diagnosis).toMatchObject({
        cause: expect.stringContaining('TLS 1.2') as string,
        remedy: expect.stringContaining('TLS 1.2') as string,
      });
      expect(server.connections()).toBe(2);
    },
  );

  test('accepts a certificate from the configured CA', async () => {
    const server = await listenTls(certificate);
    expect(await readAndWrite(server, { ca: certificate.cert })).toEqual(REACHED);
    expect(server.received()).toBe(BOTH_ASKED);
  });

  test('rejects a certificate from a different CA', async () => {
    const server = await listenTls(certificate);
    const [read, written] = await readAndWrite(server, { ca: other.cert });
    expect(read).toMatchObject({ code: 'UPSTREAM_UNREACHABLE' });
    expect(written).toEqual(expect.stringMatching(/CERT/));
    expect(server.received()).toBe('');
  });

  test('rejects a certificate for a different name, even from the configured CA', async () => {
    const elsewhere = await createCertificate({ ip: '192.0.2.1' });
    const server = await listenTls(elsewhere);
    const answers = await readAndWrite(server, { ca: elsewhere.cert });
    expect(answers).toEqual(refusedAs('ERR_TLS_CERT_ALTNAME_INVALID'));
    expect((answers[0] as ServiceError).diagnosis?.cause).toContain('IP Address:192.0.2.1, DNS:localhost');
    expect(server.received()).toBe('');
  });

  test('rejects an expired certificate', async () => {
    const expired = await createCertificate({ notAfterDate: new Date(Date.now() - 1000) });
    const server = await listenTls(expired);
    expect(await readAndWrite(server, { ca: expired.cert })).toEqual(refusedAs('CERT_HAS_EXPIRED'));
    expect(server.received()).toBe('');
  });

  test.each([
    ['with colons', (pin: string) => pin],
    ['in lower case without colons', (pin: string) => pin.replaceAll(':', '').toLowerCase()],
  ])('accepts the pinned certificate with its fingerprint written %s', async (_how, spell) => {
    const server = await listenTls(certificate);
    expect(await readAndWrite(server, { fingerprint: spell(certificate.fingerprint) })).toEqual(REACHED);
    expect(server.received()).toBe(BOTH_ASKED);
  });

  test('accepts a pinned certificate that has expired and names a different host', async () => {
    const odd = await createCertificate({ ip: '192.0.2.1', notAfterDate: new Date(Date.now() - 1000) });
    const server = await listenTls(odd);
    expect(await readAndWrite(server, { fingerprint: odd.fingerprint })).toEqual(REACHED);
  });

  test('sends no byte of a request before the pin is verified', async () => {
    const server = await listenTls(certificate);
    const answers = await readAndWrite(server, { fingerprint: other.fingerprint });
    expect(answers).toEqual([
      expect.objectContaining({
        code: 'UPSTREAM_UNREACHABLE',
        diagnosis: expect.objectContaining({
          cause: expect.stringContaining('not the pinned one') as string,
        }) as Diagnosis,
      }),
      'ERR_TLS_PIN_MISMATCH',
    ]);
    expect(server.received()).toBe('');
    expect(server.connections()).toBe(2);
  });

  test('verifies the pin on every connection', async () => {
    const server = await listenTls(certificate);
    const { writeAgent } = openConnections({
      url: server.url,
      connections: 4,
      fingerprint: other.fingerprint,
    });
    const { resolve } = openClient({ url: server.url, fingerprint: other.fingerprint });
    for (let time = 0; time < 3; time++) {
      await expect(resolve()).rejects.toMatchObject({ code: 'UPSTREAM_UNREACHABLE' });
      expect(await write({ url: server.url, agent: writeAgent })).toBe('ERR_TLS_PIN_MISMATCH');
    }
    expect(server.received()).toBe('');
  });

  test('reuses a pinned connection for the next write', async () => {
    const server = await listenTls(certificate);
    const { writeAgent } = openConnections({
      url: server.url,
      connections: 4,
      fingerprint: certificate.fingerprint,
    });
    for (let time = 0; time < 3; time++)
      expect(await write({ url: server.url, agent: writeAgent })).toBe(404);
    expect(server.connections()).toBe(1);
  });

  test('reports a plain HTTP server as unreachable, with a remedy', async () => {
    const server = await listenHttp((_request, response) => response.end());
    const { resolve } = openClient({ url: server.url.replace('http:', 'https:') });
    await expect(resolve()).rejects.toMatchObject({
      code: 'UPSTREAM_UNREACHABLE',
      diagnosis: expect.objectContaining({ remedy: expect.stringContaining('https') as string }) as Diagnosis,
    });
    expect(server.received()).toBe('');
  });

  test('fails a plain HTTP request to an HTTPS server after at most one retry', async () => {
    const server = await listenTls(certificate);
    const { resolve } = openClient({ url: server.url.replace('https:', 'http:') });
    await expect(resolve()).rejects.toMatchObject({ status: 502 });
    expect(server.received()).toBe('');
    expect(server.connections()).toBeLessThanOrEqual(2);
  });
});
