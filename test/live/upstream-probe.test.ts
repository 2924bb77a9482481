// What an operator learns when a server is tried once: over real sockets, with the trust of the configuration.
import type http from 'node:http';
import { beforeAll, expect, test } from 'vitest';
import type { Trust } from '../../src/upstream/connections.js';
import { PING, type ProbeReport, SITE, type ServerProbe, probeServer } from '../../src/upstream/probe.js';
import { REVERSE_LOOKUP_KEYS, keysAt } from '../../src/upstream/failure.js';
import { type Certificate, createCertificate } from '../support/certificate.js';
import { startDemoServer } from '../support/demo.js';
import { listenHttp, listenTls } from './upstream-loopback.js';
import { freePort } from '../support/free-port.js';

const UPSTREAM = { key: 'upstream', url: 'http://upstream.test' };
const UPSTREAM_KEYS = keysAt(UPSTREAM, UPSTREAM.url);

let certificate: Certificate;
let other: Certificate;

beforeAll(async () => {
  certificate = await createCertificate();
  other = await createCertificate();
});

function probe(url: string, changes: Trust & Partial<ServerProbe> = {}): Promise<ProbeReport> {
  const limits = { timeoutMs: 10_000, maxBodyBytes: 100_000 };
  const common = { url, question: SITE, keys: UPSTREAM_KEYS, pseudonym: 'test', ...limits };
  return probeServer({ ...common, ...changes }, new AbortController().signal);
}

const answering = (status: number, body: string, headers: http.OutgoingHttpHeaders = {}) =>
  listenHttp((_request, response) => response.writeHead(status, headers).end(body));

test('a server that answers: its latency, the version of its protocol and its certificate', async () => {
  const demo = await startDemoServer({ tls: certificate });
  const { fingerprint } = certificate;
  expect(await probe(demo.url, { fingerprint })).toEqual({
    ms: expect.any(Number) as number,
    version: '2.11',
    certificate: { fingerprint, expires: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/) as string },
    hasAnswered: true,
  });
});

test.each([
  [
    'an unknown authority',
    () => ({}),
    /self-signed.*DEPTH_ZERO/,
    'set upstream.caFile or upstream.fingerprint',
  ],
  [
    'another certificate than the pinned one',
    () => ({ fingerprint: other.fingerprint }),
    /not the pinned one: .*(?:[0-9A-F]{2}:){31}/,
    'compare the two; set upstream.fingerprint if the server has a new certificate',
  ],
])(
  '%s: the cause, the remedy, and the certificate to compare; no request was sent',
  async (...[, trust, cause, remedy]) => {
    const server = await listenTls(certificate);
    const report = await probe(server.url, trust());
    expect(report).toMatchObject({
      failure: { code: 'UPSTREAM_UNREACHABLE', cause: expect.stringMatching(cause) as string, remedy },
      certificate: { fingerprint: certificate.fingerprint },
      hasAnswered: false,
    });
    expect(server.received()).toBe('');
  },
);

test.each([
  [UPSTREAM_KEYS, 'check that the server runs at upstream.url'],
  [keysAt(UPSTREAM, 'http://mirror.test'), 'check that the server runs at upstream.mirrors'],
  [
    keysAt({ ...UPSTREAM, key: 'upstreams.1' }, 'http://mirror.test'),
    'check that the server runs at upstreams.1.mirrors',
  ],
  [REVERSE_LOOKUP_KEYS, 'check that the server runs at reverseLookup.url'],
])('a refused connection names the key of the server: $url', async (keys, remedy) => {
  const report = await probe(`http://127.0.0.1:${await freePort()}`, { keys });
  expect(report).toMatchObject({ failure: { code: 'UPSTREAM_UNREACHABLE', remedy }, hasAnswered: false });
});

test('a server that does not answer in time', async () => {
  const server = await listenHttp(() => undefined);
  const report = await probe(server.url, { timeoutMs: 50 });
  expect(report).toMatchObject({ failure: { code: 'UPSTREAM_TIMEOUT' }, hasAnswered: false });
});

test.each([401, 403, 404])('a server whose front refuses the path with %s answers', async (status) => {
  const server = await answering(status, '<h1>No</h1>', { 'content-type': 'text/html' });
  expect(await probe(server.url)).toEqual({ ms: expect.any(Number) as number, hasAnswered: true });
});

test.each([502, 503, 504])('a gateway that reports %s is no answer of the server', async (status) => {
  const server = await answering(status, '');
  const failure = { code: 'UPSTREAM_FAILED', cause: `HTTP ${status}` };
  expect(await probe(server.url)).toMatchObject({ failure, hasAnswered: false });
});

test('the proxy itself in place of the server', async () => {
  const server = await answering(508, '');
  const failure = { code: 'LOOP_DETECTED', remedy: 'upstream.url leads to this proxy itself' };
  expect(await probe(server.url)).toMatchObject({ failure, hasAnswered: false });
});

test.each([
  ['a redirect', 301, '', /a redirect \(HTTP 301/, /set upstream\.url to the target/],
  ['a page', 200, '<h1>Please log in</h1>', /no JSON \(HTTP 200.*Please log in/, undefined],
])('%s is an answer with which reads fail', async (_what, status, body, cause, remedy) => {
  const server = await answering(status, body);
  const { failure, hasAnswered } = await probe(server.url);
  expect(hasAnswered).toBe(true);
  expect(failure).toMatchObject({
    code: 'UPSTREAM_BAD_ANSWER',
    cause: expect.stringMatching(cause) as string,
  });
  if (remedy !== undefined) expect(failure?.remedy).toMatch(remedy);
});

test('a reverse look-up service may answer anything but a redirect or an error of its own', async () => {
  const server = await answering(200, 'pong');
  expect(await probe(server.url, { question: PING })).toMatchObject({ hasAnswered: true });
  expect(server.received()).toBe('GET /hrls/ping\n');
});
