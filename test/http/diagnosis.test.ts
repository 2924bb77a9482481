// The proxy diagnoses a failing Handle server in its log and hides the diagnosis from readers.
import { describe, expect, test } from 'vitest';
import { createLogger } from '../../src/observe/logger.js';
import { fixed } from '../support/fixed.js';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { type Answer, PATH, UPSTREAM_URL, mockUpstream, recordOf } from '../support/upstream.js';
import { mockWrites } from '../support/writes.js';

useNock();

const REFUSED: Answer = { status: 0, body: '', error: 'ECONNREFUSED' };
const UNTRUSTED: Answer = { status: 0, body: '', error: 'DEPTH_ZERO_SELF_SIGNED_CERT' };
/** Disables the failure cache and the circuit breaker, so that each read reaches the server. */
const FORGETFUL = { UPSTREAM_RETRY_AFTER: '0s', ...fixed({ upstream: { breaker: { failures: 1000 } } }) };

type Line = Record<string, unknown>;

async function startLogged() {
  const lines: Line[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line) as Line) };
  const logger = createLogger({ level: 'info', destination });
  const proxy = await startProxy({ ...FORGETFUL, V2_ANONYMOUS_READ: 'true' }, { logger });
  const named = (msg: string): Line[] => lines.filter((line) => line.msg === msg);
  return { proxy, named };
}

describe('diagnosis of a failing Handle server', () => {
  test('is logged once with cause and remedy, followed by one line on recovery', async () => {
    const { proxy, named } = await startLogged();
    const upstream = mockUpstream(REFUSED);
    for (const name of ['a', 'b', 'c']) await proxy.ask(`${PATH}-${name}`);
    expect(named('server is failing')).toEqual([
      expect.objectContaining({
        level: 'warn',
        server: UPSTREAM_URL,
        code: 'UPSTREAM_UNREACHABLE',
        cause: 'the connection was refused (ECONNREFUSED)',
        remedy: 'check that the server runs at upstream.url',
      }),
    ]);
    proxy.pass(1000);
    upstream.answers(recordOf());
    await proxy.ask(PATH);
    expect(named('server is working')).toEqual([
      expect.objectContaining({ server: UPSTREAM_URL, failures: 2 }),
    ]);
  });

  test('is logged again once a minute while the server keeps failing, with the number of failures', async () => {
    const { proxy, named } = await startLogged();
    mockUpstream(REFUSED);
    for (let second = 0; second <= 120; second++) {
      await proxy.ask(`${PATH}-${second}`);
      proxy.pass(1000);
    }
    expect(named('server is failing').map(({ failures }) => failures)).toEqual([1, 60, 60]);
  });

  test('is logged again when the cause changes', async () => {
    const { proxy, named } = await startLogged();
    const upstream = mockUpstream(REFUSED);
    await proxy.ask(`${PATH}-a`);
    proxy.pass(1000);
    upstream.answers(UNTRUSTED);
    await proxy.ask(`${PATH}-b`);
    expect(named('server is failing').map(({ remedy }) => remedy)).toEqual([
      'check that the server runs at upstream.url',
      'set upstream.caFile or upstream.fingerprint',
    ]);
  });

  test.each([
    ['a connection reset', { status: 0, body: '', error: 'ECONNRESET' }, /see the log of the server/],
    [
      'a non-HTTP response',
      { status: 0, body: '', error: 'HPE_INVALID_CONSTANT' },
      /upstream.url should be http or https/,
    ],
    [
      'a gateway error page',
      { status: 502, body: '<h1>Bad gateway</h1>' },
      /upstream\.url is the address of a Handle server .*, not of a gateway/,
    ],
    [
      'a 503 of a gateway',
      { status: 503, body: '<title>Down for maintenance</title>' },
      /see the log of the server, or of the gateway in front of it/,
    ],
    ['a 429', { status: 429, body: { responseCode: 3 } }, /lower upstream\.concurrency/],
  ])('includes a remedy for %s', async (_what, answer: Answer, remedy) => {
    const { proxy, named } = await startLogged();
    mockUpstream(answer);
    await proxy.ask(PATH);
    expect(named('server is failing')).toEqual([
      expect.objectContaining({ remedy: expect.stringMatching(remedy) as string }),
    ]);
  });

  test('is not logged when the server cannot read one record', async () => {
    const { proxy, named } = await startLogged();
    mockUpstream({ status: 500, body: { responseCode: 2 } });
    await proxy.ask(PATH);
    expect(named('server is failing')).toEqual([]);
  });

  describe('reader of a failing server', () => {
    test.each([PATH, `/${PATH.slice('/api/handles/'.length)}`, PATH.replace('/api/', '/api/v2/')])(
      'receives Retry-After, and no internal details, at %s',
      async (path) => {
        const { proxy, named } = await startLogged();
        mockUpstream(REFUSED);
        const { status, headers, text } = await proxy.ask(path);
        expect(status).toBe(502);
        expect(headers['retry-after']).toBe('5');
        expect(text).toContain('The Handle server is unreachable');
        expect(text).not.toMatch(/ECONNREFUSED|upstream\.|handle\.example/);
        expect(named('request')).toEqual([
          expect.objectContaining({
            code: 'UPSTREAM_UNREACHABLE',
            remedy: 'check that the server runs at upstream.url',
          }),
        ]);
      },
    );
  });

  describe('failed write', () => {
    test('returns Retry-After when the write never reached the server', async () => {
      const { proxy, named } = await startLogged();
      mockWrites({ status: 0, error: 'ECONNREFUSED' });
      const { status, headers, text } = await proxy.ask(PATH, { method: 'PUT', body: '[]' });
      expect([status, headers['retry-after']]).toEqual([502, '5']);
      expect(text).not.toContain('ECONNREFUSED');
      expect(named('request')).toEqual([
        expect.objectContaining({
          code: 'UPSTREAM_CONNECT_FAILED',
          cause: 'the connection was refused (ECONNREFUSED)',
        }),
      ]);
    });

    test('omits Retry-After when the outcome is unknown', async () => {
      const { proxy } = await startLogged();
      mockWrites({ status: 0, error: 'ECONNRESET' });
      const { status, headers } = await proxy.ask(PATH, { method: 'PUT', body: '[]' });
      expect([status, headers['retry-after']]).toEqual([502, undefined]);
    });
  });
});
