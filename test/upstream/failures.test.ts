import nock from 'nock';
import { describe, expect, test, vi } from 'vitest';
import { createMetrics } from '../../src/observe/metrics.js';
import { type Spans, createHooks } from '../../src/hooks.js';
import { testContext } from '../support/context.js';
import { useNock } from '../support/nock.js';
import { mockUpstream, resolve, UPSTREAM } from './ask.js';

useNock();

const failWith = (code: string, delayMs = 0): nock.Scope =>
  nock(UPSTREAM)
    .get(/.*/)
    .delay(delayMs)
    .replyWithError(Object.assign(new Error(code), { code }));

describe('upstream failure', () => {
  test('is retried once after a connection reset', async () => {
    const upstream = mockUpstream();
    const cut = failWith('ECONNRESET');
    upstream.reply(404, { responseCode: 100 });
    expect(await resolve('21.T1/a')).toEqual({ kind: 'not-found' });
    expect(cut.isDone()).toBe(true);
    expect(upstream.sent).toHaveLength(1);
  });

  test('is not retried after a second reset', async () => {
    failWith('ECONNRESET');
    failWith('ECONNRESET');
    await expect(resolve('21.T1/a')).rejects.toMatchObject({ code: 'UPSTREAM_UNREACHABLE', status: 502 });
  });

  test.each([
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'self-signed', 'set upstream.caFile or upstream.fingerprint'],
    ['CERT_HAS_EXPIRED', 'expired', 'renew it'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'another name', 'upstream.url'],
  ])(
    'is not retried for the certificate error %s, and diagnosed only for the operator',
    async (code, cause, remedy) => {
      failWith(code);
      await expect(resolve('21.T1/a')).rejects.toMatchObject({
        code: 'UPSTREAM_UNREACHABLE',
        message: 'The Handle server is unreachable',
        diagnosis: {
          cause: expect.stringContaining(cause) as string,
          remedy: expect.stringContaining(remedy) as string,
        },
      });
    },
  );

  test('without a code is diagnosed by its message', async () => {
    const message = 'WebAssembly.Instance(): Out of memory: Cannot allocate Wasm memory for new instance';
    nock(UPSTREAM).get(/.*/).replyWithError(new RangeError(message));
    await expect(resolve('21.T1/a')).rejects.toMatchObject({
      code: 'UPSTREAM_UNREACHABLE',
      message: 'The Handle server is unreachable',
      diagnosis: { cause: `the request could not be sent: ${message}` },
    });
  });

  test('is not retried after a timeout', async () => {
    nock(UPSTREAM).get(/.*/).delay(2000).reply(404, { responseCode: 100 });
    await expect(resolve('21.T1/a', { timeoutMs: 30 })).rejects.toMatchObject({
      code: 'UPSTREAM_TIMEOUT',
      status: 504,
      diagnosis: { remedy: expect.stringContaining('upstream.timeout') as string },
    });
  });

  test('is counted by server and result, and traced with its duration including the retry', async () => {
    const metrics = createMetrics();
    const addCall = vi.fn<Spans['addCall']>();
    const hooks = { ...createHooks(), spans: [{ addCall } as Partial<Spans> as Spans] };
    const context = testContext({ metrics, hooks });
    failWith('UND_ERR_SOCKET', 30);
    mockUpstream().reply(404, { responseCode: 100 });
    await resolve('21.T1/a', {}, context);
    mockUpstream().reply(200, 'rubbish');
    await resolve('21.T1/a', {}, context).catch(() => undefined);
    const call = { name: 'GET upstream', durationMs: expect.any(Number) as number };
    expect(addCall.mock.calls[0]?.[0].durationMs).toBeGreaterThanOrEqual(29);
    expect(addCall.mock.calls).toEqual([
      [{ ...call, result: 'not-found', isFailure: false }],
      [{ ...call, result: 'UPSTREAM_INVALID_RESPONSE', isFailure: true }],
    ]);
    const text = await metrics.exposition();
    for (const outcome of ['not-found', 'UPSTREAM_INVALID_RESPONSE'])
      expect(text).toContain(`upstream_requests_total{server="${UPSTREAM}",outcome="${outcome}"} 1`);
  });
});
