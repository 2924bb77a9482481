import nock from 'nock';
import { describe, expect, test, vi } from 'vitest';
import { ServiceError } from '../../src/errors.js';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { USER01, type V2Question, askV2, read } from '../support/v2.js';
import { NAME, type Scripted, reply, scriptUpstream, sends } from '../support/v2-upstream.js';
import { RECORD, URL_INPUT, URL_VALUE } from '../support/v2-record.js';

useNock();

const code = (status: number, responseCode: number, message?: string): Scripted => ({
  status,
  body: { responseCode, ...(message !== undefined && { message }), handle: NAME },
});

async function run(question: V2Question, script: Scripted[]) {
  const { sent } = scriptUpstream(...script);
  const proxy = await startProxy({ DELETION_HANDLES: 'true' });
  const answer = await askV2(proxy.url)(`/${NAME}`, question);
  return { answer, sent, problem: read(answer) as { status: number; code: string; detail: string } };
}

const page = '<!DOCTYPE html><title>Bad Message</title>';

describe('ePIC v2 error response', () => {
  describe('read', () => {
    test.each<[string, Scripted[], number, string]>([
      ['not found', [reply.missing], 404, 'V2_NOT_FOUND'],
      ['a record without values', [reply.empty], 404, 'V2_NOT_FOUND'],
      ['a foreign prefix', [code(400, 301, "That prefix doesn't live here")], 404, 'V2_NOT_FOUND'],
      ['a wrong login', [reply.wrongLogin], 401, 'V2_LOGIN_NEEDED'],
      ['an ignored login', [code(403, 402)], 502, 'UPSTREAM_FAILED'],
      ['a failed login', [code(403, 403)], 401, 'V2_LOGIN_NEEDED'],
      ['sessions required', [code(403, 404, 'Sessions are required')], 502, 'UPSTREAM_FAILED'],
      ['forbidden twice', [reply.forbidden, reply.forbidden], 403, 'V2_FORBIDDEN'],
      ['a malformed request', [code(400, 4, 'java.lang.Exception: x')], 400, 'V2_REJECTED'],
      ['an error', [code(500, 2, 'Internal Error')], 502, 'UPSTREAM_FAILED'],
      ['an authentication error', [code(500, 406)], 502, 'UPSTREAM_FAILED'],
      ['busy', [code(503, 3)], 503, 'UPSTREAM_BUSY'],
      ['a referral to a service', [code(300, 302)], 404, 'V2_NOT_FOUND'],
      ['a referral to a different prefix', [code(300, 303)], 404, 'V2_NOT_FOUND'],
      ['an HTML page', [{ status: 400, body: page }], 400, 'V2_REJECTED'],
      ['an HTML page: forbidden', [{ status: 403, body: page }], 403, 'V2_FORBIDDEN'],
      ['an HTML page: URI too long', [{ status: 414, body: page }], 414, 'REQUEST_LINE_TOO_LONG'],
      ['an HTML page: forbidden', [{ status: 403, body: page }], 403, 'V2_FORBIDDEN'],
      ['an HTML page with 200', [{ status: 200, body: page }], 502, 'UPSTREAM_INVALID_RESPONSE'],
      ['a success with 404', [code(404, 1)], 502, 'UPSTREAM_INVALID_RESPONSE'],
      [
        'the record of a different handle',
        [reply.record(RECORD, '21.T11998/other')],
        502,
        'UPSTREAM_INVALID_RESPONSE',
      ],
      ['an invalid value', [reply.record([{ index: 'x' }])], 502, 'UPSTREAM_INVALID_RESPONSE'],
      ['no response', [{ status: 0, hangs: true }], 504, 'UPSTREAM_TIMEOUT'],
    ])('reports %s', async (_what, script, status, errorCode) => {
      const { answer, sent, problem } = await run({}, script);
      expect([answer.status, problem.status, problem.code]).toEqual([status, status, errorCode]);
      expect(answer.headers['content-type']).toBe('application/problem+json');
      expect(problem.detail.length).toBeGreaterThan(10);
      expect(sent.length).toBe(script.length);
    });

    test.each<[string, Scripted, number]>([
      ['a missing handle', reply.missing, 100],
      ['a record without values', reply.empty, 100],
      ['a foreign prefix', code(400, 301), 301],
    ])('returns 404 for %s, with the Handle server response code', async (_what, said, responseCode) => {
      for (const question of [{}, { as: null }]) {
        const { sent } = scriptUpstream(said);
        const { url } = await startProxy({ V2_ANONYMOUS_READ: 'true' });
        const answer = await askV2(url)(`/${NAME}`, question);
        expect([answer.status, read(answer)]).toMatchObject([404, { responseCode }]);
        expect(sent).toHaveLength(1);
        nock.cleanAll();
      }
    });

    test('is retried once after a connection reset', async () => {
      const { answer, sent } = await run({}, [{ status: 0, error: 'ECONNRESET' }, reply.record(RECORD)]);
      expect([answer.status, sent.length]).toEqual([200, 2]);
    });
  });

  const PUT = { method: 'PUT', body: [URL_INPUT] };

  describe('write by PUT', () => {
    test.each<[string, Scripted, number, string]>([
      ['forbidden', reply.forbidden, 403, 'V2_FORBIDDEN'],
      ['not permitted', code(403, 401), 403, 'V2_FORBIDDEN'],
      ['a foreign prefix', code(400, 301), 403, 'V2_FORBIDDEN'],
      ['a referral', code(300, 303), 403, 'V2_FORBIDDEN'],
      ['an invalid value', code(400, 202, 'Value indexes must be positive'), 400, 'V2_REJECTED'],
      ['an invalid handle', code(400, 102), 400, 'V2_REJECTED'],
      ['a wrong login', reply.wrongLogin, 401, 'V2_LOGIN_NEEDED'],
      ['an ignored login', code(403, 402), 502, 'UPSTREAM_FAILED'],
      ['read-only', code(503, 7, 'Server temporarily disabled'), 503, 'UPSTREAM_BUSY'],
      ['an error', code(500, 2), 502, 'UPSTREAM_FAILED'],
      ['an HTML page', { status: 413, body: page }, 413, 'BODY_TOO_LARGE'],
      ['an error with 200', code(200, 2), 502, 'UPSTREAM_INVALID_RESPONSE'],
      ['no response', { status: 0, hangs: true }, 504, 'UPSTREAM_TIMEOUT'],
      ['a reset connection', { status: 0, error: 'ECONNRESET' }, 504, 'UPSTREAM_TIMEOUT'],
      ['a refused connection', { status: 0, error: 'ECONNREFUSED' }, 502, 'UPSTREAM_CONNECT_FAILED'],
    ])('reports %s without repeating the request', async (_what, refusal, status, errorCode) => {
      const { answer, sent, problem } = await run(PUT, [reply.record(RECORD), refusal]);
      expect([answer.status, problem.code]).toEqual([status, errorCode]);
      expect(sent.map(({ method }) => method)).toEqual(['GET', 'PUT']);
    });

    test.each([
      ['17', code(429, 3)],
      // A gateway in between may have aborted while the server executes the write.
      [undefined, code(503, 3)],
      [undefined, code(503, 2)],
      [undefined, code(502, 2)],
    ])('has the Retry-After %s after the response %j with 17', async (expected, refusal) => {
      const refused = { ...refusal, headers: { 'Retry-After': '17' } };
      const { answer } = await run(PUT, [reply.record(RECORD), refused]);
      expect([answer.status >= 500, answer.headers['retry-after']]).toEqual([true, expected]);
    });

    test('has no Retry-After if an earlier request of the write was executed', async () => {
      const hidden = [reply.forbidden, reply.record([URL_VALUE])];
      const refused = { ...code(429, 3), headers: { 'Retry-After': '17' } };
      const body = [
        { ...URL_INPUT, idx: 1, parsed_data: 'https://example.org/new' },
        { ...URL_INPUT, idx: 7 },
      ];
      const { answer, sent } = await run({ ...PUT, body }, [...hidden, reply.done, refused]);
      expect(sent.map(({ method }) => method)).toEqual(['GET', 'GET', 'PUT', 'PUT']);
      expect([answer.status, answer.headers['retry-after']]).toEqual([503, undefined]);
    });

    test('has no Retry-After if the record was written, and its invalidation is unconfirmed', async () => {
      scriptUpstream(reply.record(RECORD), reply.done);
      const { url, app } = await startProxy();
      const unconfirmed = () =>
        Promise.reject(new ServiceError('INVALIDATION_UNCONFIRMED', { retryAfterMs: 1000 }));
      const fence = {
        changed: unconfirmed,
        unchanged: unconfirmed,
        unknown: unconfirmed,
        extend: () => undefined,
      };
      vi.spyOn(app.host.cache.store, 'fence').mockResolvedValue(fence);
      const answer = await askV2(url)(`/${NAME}`, PUT);
      expect(read(answer)).toMatchObject({ status: 503, code: 'INVALIDATION_UNCONFIRMED' });
      expect(answer.headers).not.toHaveProperty('retry-after');
    });
  });

  describe('read before a write', () => {
    const READ = sends('GET', `/${NAME}?auth=true`, USER01);
    const refusals: [string, Scripted[], number, string][] = [
      ['a wrong login', [reply.wrongLogin], 401, 'V2_LOGIN_NEEDED'],
      ['an ignored login', [code(403, 402)], 502, 'UPSTREAM_FAILED'],
      ['an error', [code(500, 2)], 502, 'UPSTREAM_FAILED'],
      ['busy', [code(503, 3)], 503, 'UPSTREAM_BUSY'],
      ['an HTML page', [{ status: 200, body: page }], 502, 'UPSTREAM_INVALID_RESPONSE'],
      ['no response', [{ status: 0, hangs: true }], 504, 'UPSTREAM_TIMEOUT'],
    ];

    test.each([...refusals, ['a missing handle', [reply.missing], 412, 'PRECONDITION_FAILED'] as const])(
      'reports %s and writes nothing',
      async (_what, script, status, errorCode) => {
        for (const question of [PUT, { method: 'DELETE' }]) {
          const conditional = { ...question, headers: { 'If-Match': '*' } };
          const { answer, sent, problem } = await run(conditional, [...script]);
          expect([answer.status, problem.code, sent]).toEqual([status, errorCode, [READ]]);
          nock.cleanAll();
        }
      },
    );
  });

  test.each([code(400, 301), code(300, 302), code(300, 303)])(
    'relays the refusal of a PUT when the server is not responsible ($body.responseCode)',
    async (elsewhere) => {
      const { answer, sent, problem } = await run(PUT, [elsewhere, elsewhere]);
      expect([answer.status, problem.code]).toEqual([403, 'V2_FORBIDDEN']);
      expect(sent.map(({ method }) => method)).toEqual(['GET', 'PUT']);
    },
  );

  describe('write by POST', () => {
    test.each<[string, Scripted, number, string]>([
      ['forbidden', reply.forbidden, 403, 'V2_FORBIDDEN'],
      ['not permitted', code(403, 401), 403, 'V2_FORBIDDEN'],
      ['a foreign prefix', code(400, 301), 403, 'V2_FORBIDDEN'],
      ['a referral', code(300, 302), 403, 'V2_FORBIDDEN'],
      ['an invalid value', code(400, 202), 400, 'V2_REJECTED'],
      ['a wrong login', reply.wrongLogin, 401, 'V2_LOGIN_NEEDED'],
      ['an ignored login', code(403, 402), 502, 'UPSTREAM_FAILED'],
      ['an HTML page', { status: 413, body: page }, 413, 'BODY_TOO_LARGE'],
      ['a refused connection', { status: 0, error: 'ECONNREFUSED' }, 502, 'UPSTREAM_CONNECT_FAILED'],
    ])('reports %s without trying a different name', async (_what, refusal, status, errorCode) => {
      const { sent } = scriptUpstream(refusal);
      const { url } = await startProxy();
      const answer = await askV2(url)('/21.T11998', { method: 'POST', body: [URL_INPUT] });
      expect([answer.status, (read(answer) as { code: string }).code]).toEqual([status, errorCode]);
      expect(sent.map(({ method }) => method)).toEqual(['PUT']);
    });

    test.each<[string, Scripted, number, string]>([
      ['busy', code(503, 3), 503, 'UPSTREAM_BUSY'],
      ['read-only', code(503, 7), 503, 'UPSTREAM_BUSY'],
      ['an error', code(500, 2), 502, 'UPSTREAM_FAILED'],
    ])('reports %s after one read of the minted handle', async (_what, failure, status, errorCode) => {
      const { sent } = scriptUpstream(failure, reply.missing);
      const { url } = await startProxy();
      const answer = await askV2(url)('/21.T11998', { method: 'POST', body: [URL_INPUT] });
      expect([answer.status, (read(answer) as { code: string }).code]).toEqual([status, errorCode]);
      expect(sent.map(({ method }) => method)).toEqual(['PUT', 'GET']);
    });
  });

  describe('DELETE', () => {
    test.each<[string, Scripted, number, string]>([
      ['not found', reply.missing, 404, 'V2_NOT_FOUND'],
      ['forbidden', reply.forbidden, 403, 'V2_FORBIDDEN'],
      ['a foreign prefix', code(400, 301), 403, 'V2_FORBIDDEN'],
      ['a referral', code(300, 303), 403, 'V2_FORBIDDEN'],
      ['a wrong login', reply.wrongLogin, 401, 'V2_LOGIN_NEEDED'],
      ['an ignored login', code(403, 402), 502, 'UPSTREAM_FAILED'],
      ['not supported', code(501, 5), 501, 'V2_NOT_SUPPORTED'],
      ['busy', code(503, 3), 503, 'UPSTREAM_BUSY'],
      ['an error', code(500, 2), 502, 'UPSTREAM_FAILED'],
      ['no response', { status: 0, hangs: true }, 504, 'UPSTREAM_TIMEOUT'],
      ['a reset connection', { status: 0, error: 'ECONNRESET' }, 504, 'UPSTREAM_TIMEOUT'],
    ])('reports %s without repeating the request', async (_what, refusal, status, errorCode) => {
      const { answer, sent, problem } = await run({ method: 'DELETE' }, [reply.record(RECORD), refusal]);
      expect([answer.status, problem.code]).toEqual([status, errorCode]);
      expect(sent).toEqual([sends('GET', `/${NAME}?auth=true`, USER01), sends('DELETE', `/${NAME}`, USER01)]);
    });
  });
});
