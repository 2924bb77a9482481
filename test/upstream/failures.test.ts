// A Handle server that is cut off, slow, or left alone by the caller.
import nock from 'nock';
import { expect, test, vi } from 'vitest';
import type { UpstreamCall } from '../../src/upstream/upstream-server.js';
import { useNock } from '../support/nock.js';
import { mockUpstream, resolve, UPSTREAM } from './ask.js';

useNock();

const failWith = (code: string): nock.Scope =>
  nock(UPSTREAM)
    .get(/.*/)
    .replyWithError(Object.assign(new Error(code), { code }));

test('a connection that is cut is tried once more', async () => {
  const upstream = mockUpstream();
  const cut = failWith('ECONNRESET');
  upstream.reply(404, { responseCode: 100 });
  expect(await resolve('21.T1/a')).toEqual({ kind: 'not-found' });
  expect(cut.isDone()).toBe(true);
  expect(upstream.sent).toHaveLength(1);
});

test('a connection that is cut twice is not tried a third time', async () => {
  failWith('ECONNRESET');
  failWith('ECONNRESET');
  await expect(resolve('21.T1/a')).rejects.toMatchObject({ code: 'UPSTREAM_UNREACHABLE', status: 502 });
});

test.each([
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'self-signed', 'set upstream.caFile or upstream.fingerprint'],
  ['CERT_HAS_EXPIRED', 'expired', 'renew it'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'another name', 'upstream.url'],
])(
  'the certificate error %s is not retried and is diagnosed for the operator only',
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

test('a response that takes too long is a timeout and is requested once', async () => {
  nock(UPSTREAM).get(/.*/).delay(2000).reply(404, { responseCode: 100 });
  await expect(resolve('21.T1/a', { timeoutMs: 30 })).rejects.toMatchObject({
    code: 'UPSTREAM_TIMEOUT',
    status: 504,
    diagnosis: { remedy: expect.stringContaining('upstream.timeout') as string },
  });
});

test('each question is reported with its server, result, duration and second try', async () => {
  const onCall = vi.fn<(asked: UpstreamCall) => void>();
  let time = 0;
  const now = (): number => (time += 5);
  failWith('UND_ERR_SOCKET');
  mockUpstream().reply(404, { responseCode: 100 });
  await resolve('21.T1/a', { onCall, now });
  mockUpstream().reply(200, 'rubbish');
  await resolve('21.T1/a', { onCall, now }).catch(() => undefined);
  expect(onCall.mock.calls).toEqual([
    [{ server: UPSTREAM, result: 'not-found', durationMs: 5, retried: true }],
    [{ server: UPSTREAM, result: 'UPSTREAM_BAD_ANSWER', durationMs: 5, retried: false }],
  ]);
});
