// The operator's server probe, over real sockets and with the configured trust.
import { partial } from '../support/partial.js';
import type http from 'node:http';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Trust } from '../../src/upstream/connections.js';
import { type ProbeReport, type ServerProbe, pingQuestion, probeServer } from '../../src/upstream/probe.js';
import { DSPACE, TEMPLATE } from '../../src/plugins/repositories/repositories.js';
import { HANDLE_SERVER } from '../../src/upstream/handle-server.js';
import type { ProbeQuestion } from '../../src/upstream/contract.js';
import { keysAt } from '../../src/upstream/failure.js';
import { KEYS } from '../../src/plugins/reverse-lookup/plugin.js';
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

const askHandleServer = (url: string, handle: string): ProbeQuestion =>
  HANDLE_SERVER.protocol(partial({ url, prefixes: [] })).probe(handle);

/** Returns the report, and whether the server itself has responded. */
async function probe(
  url: string,
  { onAnswered, ...changes }: Trust & Partial<ServerProbe> & { onAnswered?: () => void } = {},
): Promise<ProbeReport & { hasAnswered: boolean }> {
  const limits = { timeoutMs: 10_000, maxBodyBytes: 100_000, staleAfterMs: 10_000 };
  const common = {
    url,
    question: askHandleServer(url, '0.NA/0.NA'),
    keys: UPSTREAM_KEYS,
    pseudonym: 'test',
    ...limits,
  };
  let hasAnswered = false;
  const report = await probeServer(
    { ...common, ...changes },
    {
      signal: new AbortController().signal,
      onAnswered: () => {
        hasAnswered = true;
        onAnswered?.();
      },
    },
  );
  return { ...report, hasAnswered };
}

const answering = (status: number, body: string, headers: http.OutgoingHttpHeaders = {}) =>
  listenHttp((_request, response) => response.writeHead(status, headers).end(body));

describe('upstream probe', () => {
  test('counts a server as responding before its version is known', async () => {
    let answerVersion: () => void = () => undefined;
    const isAsked = new Promise<void>((resolve) => {
      answerVersion = resolve;
    });
    const server = await listenHttp((request, response) => {
      const answer = (): void => void response.writeHead(404).end('{"responseCode":100}');
      if (request.url === '/api/site') void isAsked.then(answer);
      else answer();
    });
    // The server sends its version only after the probe has reported its first response.
    expect(await probe(server.url, { onAnswered: answerVersion })).toMatchObject({ hasAnswered: true });
  });

  test('reports latency, protocol version and certificate of a Handle server', async () => {
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
      'a certificate that is not pinned',
      () => ({ fingerprint: other.fingerprint }),
      /not the pinned one: .*(?:[0-9A-F]{2}:){31}/,
      'compare the two; set upstream.fingerprint if the server has a new certificate',
    ],
  ])(
    'reports cause, remedy and certificate for %s, and sends no request',
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
    [keysAt(UPSTREAM, 'http://secondary.test'), 'check that the server runs at upstream.secondaries'],
    [
      keysAt({ ...UPSTREAM, key: 'upstreams.1' }, 'http://secondary.test'),
      'check that the server runs at upstreams.1.secondaries',
    ],
    [KEYS, 'check that the server runs at reverseLookup.url'],
  ])('names the configuration key of the server for a refused connection: $url', async (keys, remedy) => {
    const report = await probe(`http://127.0.0.1:${await freePort()}`, { keys });
    expect(report).toMatchObject({ failure: { code: 'UPSTREAM_UNREACHABLE', remedy }, hasAnswered: false });
  });

  test('reports a server that times out', async () => {
    const server = await listenHttp(() => undefined);
    const report = await probe(server.url, { timeoutMs: 50 });
    expect(report).toMatchObject({ failure: { code: 'UPSTREAM_TIMEOUT' }, hasAnswered: false });
  });

  const HANDLE_JSON = { 'content-type': 'application/json' };
  const HTML = { 'content-type': 'text/html', server: 'nginx/1.22.1' };

  test.each([
    ['404 for the record', 404, '{"responseCode":100}'],
    ['400 for a foreign prefix', 400, '{"responseCode":301}'],
    ['401 and a challenge', 401, '{"responseCode":402}'],
  ])(
    'accepts a Handle server that returns %s, because a gateway may hide its site',
    async (_what, status, json) => {
      const server = await listenHttp(({ url }, response) => {
        if (url === '/api/handles/21.T1/a%20b') response.writeHead(status, HANDLE_JSON).end(json);
        else response.writeHead(403, HTML).end('<h1>No</h1>');
      });
      expect(await probe(server.url, { question: askHandleServer(server.url, '21.T1/a b') })).toEqual({
        ms: expect.any(Number) as number,
        version: undefined,
        hasAnswered: true,
      });
    },
  );

  test.each([
    ['refuses every path', 403, '<h1>No</h1>'],
    ['knows no such path', 404, '<html><h1>404 Not Found</h1></html>'],
    ['shows a page for every path', 200, '<h1>Please log in</h1>'],
    ['returns JSON without a response code', 404, '{"error":"not found"}'],
  ])('rejects a web server that %s, because it is no Handle server', async (_what, status, body) => {
    const server = await answering(status, body, HTML);
    expect(await probe(server.url)).toMatchObject({
      hasAnswered: false,
      failure: {
        code: 'UPSTREAM_INVALID_RESPONSE',
        cause: expect.stringMatching(
          new RegExp(`^no (?:JSON|response code) \\(HTTP ${status}, text/html, server nginx/1\\.22\\.1, `),
        ) as string,
        remedy:
          'check that upstream.url is the address of a Handle server over HTTP, not of a gateway or another service',
      },
    });
  });

  test('accepts a Handle server whose reads fail with an internal error', async () => {
    const server = await answering(500, '{"responseCode":2}', HANDLE_JSON);
    const cause = expect.stringMatching(/^HTTP 500, application\/json/) as string;
    const failure = { code: 'UPSTREAM_FAILED', cause, remedy: 'see the log of the server' };
    expect(await probe(server.url)).toMatchObject({ failure, hasAnswered: true });
  });

  test.each([502, 503, 504])('rejects a gateway that returns %s', async (status) => {
    const server = await answering(status, `<title>${status} No server</title>`, HTML);
    const cause = `HTTP ${status}, text/html, server nginx/1.22.1, 28 characters, "${status} No server"`;
    const remedy = 'see the log of the server, or of the gateway in front of it';
    expect(await probe(server.url)).toMatchObject({
      failure: { code: 'UPSTREAM_FAILED', cause, remedy },
      hasAnswered: false,
    });
  });

  test.each([502, 503, 504])('rejects a proxy that returns %s in the protocol format', async (status) => {
    const server = await answering(status, '{"responseCode":2}', HANDLE_JSON);
    expect(await probe(server.url)).toMatchObject({
      failure: { code: 'UPSTREAM_FAILED' },
      hasAnswered: false,
    });
  });

  test.each(['', '{"responseCode":2}'])(
    'rejects this proxy itself in place of the server (response %j)',
    async (body) => {
      const server = await answering(508, body, HANDLE_JSON);
      const failure = { code: 'LOOP_DETECTED', remedy: 'upstream.url leads to this proxy itself' };
      expect(await probe(server.url)).toMatchObject({ failure, hasAnswered: false });
    },
  );

  test('warns of a Handle server that is slower than upstream.staleAfter', async () => {
    const server = await answering(404, '{"responseCode":100}', HANDLE_JSON);
    const { failure, warning } = await probe(server.url, { staleAfterMs: -1 });
    expect([failure, warning?.cause]).toEqual([
      undefined,
      'the response took longer than upstream.staleAfter',
    ]);
    expect(await probe(server.url)).not.toHaveProperty('warning');
  });

  test('suggests port 8000 if the address has the port of the native protocol', async () => {
    const keys = keysAt({ ...UPSTREAM, url: 'http://handle.test:2641' }, 'http://handle.test:2641');
    const server = await listenHttp(({ socket }) => socket.destroy());
    expect((await probe(server.url, { keys })).failure?.remedy).toMatch(
      /upstream\.url should be http or https; port 2641 is usually the native protocol, and JSON on port 8000$/,
    );
  });

  test('rejects a redirect, and names its target without the query', async () => {
    const server = await answering(301, '', { Location: 'https://login.test/a?ticket=secret' });
    expect(await probe(server.url)).toMatchObject({
      failure: {
        code: 'UPSTREAM_INVALID_RESPONSE',
        cause: 'a redirect (HTTP 301, no content type, to https://login.test/a, 0 characters)',
        remedy: expect.stringMatching(/set upstream\.url to the target/) as string,
      },
      hasAnswered: false,
    });
  });

  test('accepts a response other than JSON from a reverse lookup service', async () => {
    const server = await answering(200, 'pong');
    expect(await probe(server.url, { question: pingQuestion(server.url) })).toMatchObject({
      hasAnswered: true,
    });
    expect(server.received()).toBe('GET /hrls/ping\n');
  });
});

describe('repository probe', () => {
  const dspace = (url: string) => DSPACE.protocol(partial({ url, prefixes: ['123456'] })).probe('0.NA/0.NA');

  test.each([
    ['the configured prefix', 200, '["20.500.1","123456"]', undefined],
    ['other prefixes only', 200, '["123456789"]', /a DSpace with other prefixes/],
    ['a resolver that is switched off', 404, '{"status":404}', /not a DSpace response \(HTTP 404/],
    ['a database error (version 6)', 200, '', /no JSON/],
    ['an error', 500, '', /HTTP 500/],
  ])('reports the state of a DSpace with %s', async (_what, status, body, cause) => {
    const server = await answering(status, body);
    const report = await probe(server.url, { question: dspace(`${server.url}/server/`) });
    expect(report.hasAnswered).toBe(cause === undefined);
    expect(report.failure?.cause ?? '').toMatch(cause ?? /^$/);
    expect(server.received()).toBe('GET /server/listprefixes\n');
  });

  test('accepts the site of a URL template when it responds with a redirect', async () => {
    const server = await answering(302, '', { location: '/login' });
    const source = TEMPLATE.protocol(partial({ url: `${server.url}/item/{suffix}`, prefixes: [] }));
    const question = source.probe('0.NA/0.NA');
    expect(await probe(server.url, { question })).toMatchObject({ hasAnswered: true });
    expect(server.received()).toBe('HEAD /\n');
  });
});
