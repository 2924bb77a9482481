// After many failures the Handle server is left alone for a while, then asked one question as a probe.
import nock from 'nock';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ServiceError } from '../../src/errors.js';
import type { UpstreamClient } from '../../src/upstream/client.js';
import type { BreakerState } from '../../src/upstream/resilience.js';
import { useNock } from '../support/nock.js';
import { createClient, mockUpstream, UPSTREAM } from './ask.js';

useNock();

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date', 'performance'] });
});

afterEach(() => {
  vi.useRealTimers();
});

const OPEN_FOR_MS = 5000;
const question = { handle: '21.T1/a', authoritative: false };

function createWatched(): { client: UpstreamClient; states: BreakerState[] } {
  const states: BreakerState[] = [];
  const onBreaker = (state: BreakerState): number => states.push(state);
  return { client: createClient({ breaker: { failures: 3, openForMs: OPEN_FOR_MS, onBreaker } }), states };
}

async function codeOf(answer: Promise<unknown>): Promise<string> {
  return answer.then(
    () => 'answered',
    (error: unknown) => (error as { code: string }).code,
  );
}

async function failTimes(client: UpstreamClient, times: number): Promise<void> {
  for (let time = 0; time < times; time++) {
    mockUpstream().reply(500, { responseCode: 2 });
    expect(await codeOf(client.resolve(question))).toBe('UPSTREAM_FAILED');
  }
}

test('after three failures nothing is asked until the rest is over', async () => {
  const { client, states } = createWatched();
  await failTimes(client, 3);
  expect(client.breakerState()).toBe('open');
  const upstream = mockUpstream();
  expect(await codeOf(client.resolve(question))).toBe('UPSTREAM_RESTING');
  vi.setSystemTime(Date.now() + OPEN_FOR_MS - 1);
  expect(await codeOf(client.resolve(question))).toBe('UPSTREAM_RESTING');
  expect(upstream.sent).toHaveLength(0);
  expect(states).toEqual(['open']);
});

test('a probe that is answered closes the breaker', async () => {
  const { client, states } = createWatched();
  await failTimes(client, 3);
  vi.setSystemTime(Date.now() + OPEN_FOR_MS);
  const upstream = mockUpstream();
  upstream.reply(404, { responseCode: 100 });
  expect(await client.resolve(question)).toEqual({ kind: 'not-found' });
  expect(upstream.sent).toHaveLength(1);
  expect(states).toEqual(['open', 'half-open', 'closed']);
  await failTimes(client, 2);
  expect(client.breakerState()).toBe('closed');
});

test('many callers at the end of the rest make one probe, and when it fails none asks again', async () => {
  const { client, states } = createWatched();
  await failTimes(client, 3);
  vi.setSystemTime(Date.now() + OPEN_FOR_MS);
  const upstream = mockUpstream();
  upstream.reply(500, { responseCode: 2 });
  const codes = await Promise.all(Array.from({ length: 20 }, () => codeOf(client.resolve(question))));
  expect(codes).toEqual(['UPSTREAM_FAILED', ...Array<string>(19).fill('UPSTREAM_RESTING')]);
  expect(upstream.sent).toHaveLength(1);
  expect(states).toEqual(['open', 'half-open', 'open']);
});

test('a probe goes on when its caller leaves', async () => {
  const { client, states } = createWatched();
  await failTimes(client, 3);
  vi.setSystemTime(Date.now() + OPEN_FOR_MS);
  nock(UPSTREAM).get(/.*/).delay(20).reply(404, { responseCode: 100 });
  const caller = new AbortController();
  const left = client.resolve({ ...question, signal: caller.signal });
  caller.abort(new Error('gone'));
  await expect(left).rejects.toThrow('gone');
  await vi.waitFor(() => {
    expect(states).toEqual(['open', 'half-open', 'closed']);
  });
});

test('a failure begun before the breaker opened does not undo the probe', async () => {
  const { client, states } = createWatched();
  let failLate = (): void => undefined;
  nock(UPSTREAM)
    .get('/api/handles/21.T1/late')
    .reply(
      () =>
        new Promise((answer) => {
          failLate = () => {
            answer([500, { responseCode: 2 }]);
          };
        }),
    );
  const late = codeOf(client.resolve({ handle: '21.T1/late', authoritative: false }));
  await failTimes(client, 3);
  vi.setSystemTime(Date.now() + OPEN_FOR_MS);
  nock(UPSTREAM)
    .get('/api/handles/21.T1/a')
    .reply(async () => {
      failLate();
      await late;
      return [404, { responseCode: 100 }];
    });
  expect(await client.resolve(question)).toEqual({ kind: 'not-found' });
  expect(states).toEqual(['open', 'half-open', 'closed']);
});

test('refusals and missing handles are answers, not failures', async () => {
  const { client } = createWatched();
  await failTimes(client, 2);
  mockUpstream().reply(400, { responseCode: 301 });
  await client.resolve(question);
  await failTimes(client, 2);
  mockUpstream().reply(404, { responseCode: 100 });
  await client.resolve(question);
  await failTimes(client, 2);
  expect(client.breakerState()).toBe('closed');
});

test('callers who leave are no failures of the server, whatever reason they give', async () => {
  const { client } = createWatched();
  await failTimes(client, 2);
  nock(UPSTREAM).get(/.*/).delay(500).reply(404, { responseCode: 100 });
  const caller = new AbortController();
  const asked = client.resolve({ ...question, signal: caller.signal });
  setImmediate(() => {
    caller.abort(new ServiceError('UPSTREAM_TIMEOUT', { detail: 'gone' }));
  });
  await expect(asked).rejects.toThrow('gone');
  expect(client.breakerState()).toBe('closed');
});

test('bad answers, cut connections and timeouts all count', async () => {
  const { client } = createWatched();
  mockUpstream().reply(200, 'rubbish');
  expect(await codeOf(client.resolve(question))).toBe('UPSTREAM_BAD_ANSWER');
  const error = Object.assign(new Error('cut'), { code: 'ECONNRESET' });
  nock(UPSTREAM).get(/.*/).times(2).replyWithError(error);
  expect(await codeOf(client.resolve(question))).toBe('UPSTREAM_UNREACHABLE');
  nock(UPSTREAM)
    .get(/.*/)
    .replyWithError(Object.assign(new Error('slow'), { code: 'UND_ERR_HEADERS_TIMEOUT' }));
  expect(await codeOf(client.resolve(question))).toBe('UPSTREAM_TIMEOUT');
  expect(client.breakerState()).toBe('open');
});
