// Broken records open the breaker only if many different ones fail and no read succeeds in between.
import nock from 'nock';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { useNock } from '../support/nock.js';
import { thorough } from '../support/thorough.js';
import { mockUpstream, UPSTREAM } from './ask.js';
import { answerWell, ask, createWatched, fail, FAILURES, handles, pass } from './watched-client.js';

useNock();

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date', 'performance'] });
});

afterEach(() => {
  vi.useRealTimers();
});

describe('broken record (circuit breaker)', () => {
  test('does not open the breaker, however often it is requested', async () => {
    const { client, state } = createWatched();
    // More than the different records that would open it.
    const times = thorough(200, 11 * FAILURES);
    for (let time = 0; time < times; time++) await fail(client, ['21.T1/broken']);
    for (let time = 0; time < 20; time++) await fail(client, ['21.T1/broken'], 502);
    expect(state()).toBe('closed');
  });

  test('is tolerated while fewer records fail than ten times the failure threshold', async () => {
    const { client, state } = createWatched();
    await fail(client, handles(10 * FAILURES - 1));
    expect(state()).toBe('closed');
    await answerWell(client);
    await fail(client, handles(10 * FAILURES - 1, 'more'));
    expect(state()).toBe('closed');
  });
});

describe('server that fails every request (circuit breaker)', () => {
  test('opens the breaker after ten times the failure threshold and receives few further requests', async () => {
    const { client, states, state } = createWatched();
    await fail(client, handles(10 * FAILURES));
    expect(states()).toEqual(['open']);
    const upstream = mockUpstream();
    for (let time = 0; time < FAILURES; time++) upstream.reply(500, { responseCode: 2 });
    const codes = await Promise.all(handles(100, 'more').map((handle) => ask(client, handle)));
    expect(upstream.sent).toHaveLength(FAILURES);
    expect(codes.filter((code) => code === 'UPSTREAM_BACKOFF')).toHaveLength(100 - FAILURES);
    expect(state()).toBe('open');
  });

  test('closes the breaker with its first good response', async () => {
    const { client, states, state } = createWatched();
    await fail(client, handles(10 * FAILURES));
    await answerWell(client);
    expect(states()).toEqual(['open', 'half-open', 'closed']);
    await fail(client, handles(10 * FAILURES - 1));
    expect(state()).toBe('closed');
  });
});

describe('possible record failure (circuit breaker)', () => {
  test.each([
    [502, 'a gateway'],
    [503, 'a gateway'],
    [504, 'a gateway'],
  ])('is counted once per record for HTTP %i from %s', async (status) => {
    const { client, states } = createWatched();
    for (const handle of handles(2).flatMap((one) => [one, one, one])) {
      mockUpstream().reply(status, '<h1>gateway</h1>');
      await ask(client, handle);
    }
    expect(states()).toEqual([]);
    mockUpstream().reply(status, '<h1>gateway</h1>');
    await ask(client, '21.T1/third');
    expect(states()).toEqual(['open']);
  });

  test.each(['ECONNRESET', 'UND_ERR_HEADERS_TIMEOUT', 'HPE_INVALID_CONSTANT'])(
    'is counted once per record for %s',
    async (code) => {
      const { client, states } = createWatched();
      nock(UPSTREAM)
        .persist()
        .get(/.*/)
        .replyWithError(Object.assign(new Error(code), { code }));
      for (const handle of handles(2).flatMap((one) => [one, one, one])) await ask(client, handle);
      expect(states()).toEqual([]);
      await ask(client, '21.T1/third');
      expect(states()).toEqual(['open']);
    },
  );

  test('is not counted within a second of a good response', async () => {
    const { client, states } = createWatched();
    await answerWell(client);
    pass(999);
    await fail(client, handles(20), 502);
    expect(states()).toEqual([]);
    pass(1);
    await fail(client, ['21.T1/one-more'], 502);
    expect(states()).toEqual(['open']);
  });

  test('is counted after a machine was suspended since the last good response', async () => {
    const { client, states } = createWatched();
    await answerWell(client);
    // Only the wall clock advances while a machine is suspended.
    vi.setSystemTime(Date.now() + 60_000);
    await fail(client, handles(FAILURES), 502);
    expect(states()).toEqual(['open']);
  });

  test('is not counted when a good response arrived after the request was sent', async () => {
    const { client, states } = createWatched();
    let failAll = (): void => undefined;
    const over = new Promise<void>((resolve) => (failAll = resolve));
    nock(UPSTREAM)
      .get(/hanging/)
      .times(10)
      .reply(async () => {
        await over;
        return [504, { responseCode: 2 }];
      });
    const hanging = handles(10, 'hanging').map((handle) => ask(client, handle));
    await answerWell(client);
    pass(2000);
    failAll();
    await Promise.all(hanging);
    expect(states()).toEqual([]);
  });
});
