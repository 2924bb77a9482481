// The breaker opens for an unreachable server, then probes it, and closes when it responds.
import nock from 'nock';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { gate } from '../support/gate.js';
import { useNock } from '../support/nock.js';
import { mockUpstream, UPSTREAM } from './ask.js';
import {
  answerWell,
  ask,
  createWatched,
  fail,
  FAILURES,
  handles,
  OPEN_FOR_MS,
  pass,
  question,
  refuse,
} from './watched-client.js';

useNock();

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date', 'performance'] });
});

afterEach(() => {
  vi.useRealTimers();
});

describe('circuit breaker', () => {
  describe('server that refuses connections', () => {
    test('receives no request for upstream.breaker.openFor after three failures', async () => {
      const { client, states } = createWatched();
      await refuse(client, 3);
      const upstream = mockUpstream();
      expect(await ask(client, '21.T1/a')).toBe('UPSTREAM_BACKOFF');
      pass(OPEN_FOR_MS - 1);
      expect(await ask(client, '21.T1/b')).toBe('UPSTREAM_BACKOFF');
      expect(upstream.sent).toHaveLength(0);
      expect(states()).toEqual(['open']);
    });

    test('receives no further request after a failed probe', async () => {
      const { client, states } = createWatched();
      await refuse(client, 3);
      pass(OPEN_FOR_MS);
      await refuse(client, 1);
      expect(await Promise.all(handles(20).map((handle) => ask(client, handle)))).toEqual(
        Array<string>(20).fill('UPSTREAM_BACKOFF'),
      );
      expect(states()).toEqual(['open', 'half-open', 'open']);
    });

    test('receives all requests again after a successful probe', async () => {
      const { client, states, state } = createWatched();
      await refuse(client, 3);
      pass(OPEN_FOR_MS);
      await answerWell(client, '21.T1/a');
      expect(states()).toEqual(['open', 'half-open', 'closed']);
      await refuse(client, 2);
      expect(state()).toBe('closed');
    });

    test('receives all requests again after a probe that returns an error response', async () => {
      const { client, states } = createWatched();
      await refuse(client, 3);
      pass(OPEN_FOR_MS);
      await fail(client, ['21.T1/broken']);
      expect(states()).toEqual(['open', 'half-open', 'closed']);
      await answerWell(client);
    });

    test('opens the breaker even after a recent good response', async () => {
      const { client, state } = createWatched();
      await answerWell(client);
      await refuse(client, 3);
      expect(state()).toBe('open');
    });
  });

  describe('open breaker', () => {
    test('sends only one probe for broken records before a good record closes it', async () => {
      const { client, states, state } = createWatched();
      await fail(client, handles(FAILURES), 502);
      expect(states()).toEqual(['open']);
      const upstream = mockUpstream();
      upstream.reply(502, { responseCode: 2 });
      const again = await Promise.all(handles(FAILURES).map((handle) => ask(client, handle)));
      expect(again.filter((code) => code === 'UPSTREAM_BACKOFF')).toHaveLength(FAILURES - 1);
      expect(upstream.sent).toHaveLength(1);
      await answerWell(client);
      expect(state()).toBe('closed');
    });

    test('sends one probe for many callers of one record', async () => {
      const { client } = createWatched();
      await fail(client, handles(FAILURES), 502);
      pass(OPEN_FOR_MS);
      const upstream = mockUpstream();
      upstream.reply(502, { responseCode: 2 });
      const codes = await Promise.all(Array.from({ length: 20 }, () => ask(client, '21.T1/a')));
      expect(codes).toEqual(['UPSTREAM_FAILED', ...Array<string>(19).fill('UPSTREAM_BACKOFF')]);
      expect(upstream.sent).toHaveLength(1);
    });

    test('probes a few records per interval, including previously failed ones', async () => {
      const { client } = createWatched();
      await fail(client, handles(FAILURES), 502);
      for (let period = 0; period < 3; period++) {
        await fail(client, [...handles(FAILURES, `period-${period}`), handles(1)[0]!], 502);
        expect(await ask(client, '21.T1/late')).toBe('UPSTREAM_BACKOFF');
        pass(OPEN_FOR_MS);
      }
    });

    test('refuses other records immediately while probes that hang hold every slot', async () => {
      const { client, state } = createWatched({ concurrency: 2, minConcurrency: 2 });
      await fail(client, handles(FAILURES), 502);
      const held = gate();
      nock(UPSTREAM)
        .get(/.*/)
        .twice()
        .reply(() => held.opened.then(() => [404, { responseCode: 100 }]));
      const probes = handles(2, 'probe').map((handle) => ask(client, handle));
      expect(await ask(client, '21.T1/other')).toBe('UPSTREAM_BACKOFF');
      held.open();
      expect(await Promise.all(probes)).toEqual(['answered', 'answered']);
      expect(state()).toBe('closed');
    });

    test('closes after a successful probe, despite the late failure of an earlier request', async () => {
      const { client, states } = createWatched();
      let failLate = (): void => undefined;
      nock(UPSTREAM)
        .get('/api/handles/21.T1/late')
        .reply(
          () =>
            new Promise((answer) => {
              failLate = () => {
                answer([502, { responseCode: 2 }]);
              };
            }),
        );
      const late = ask(client, '21.T1/late');
      await refuse(client, 3);
      pass(OPEN_FOR_MS);
      nock(UPSTREAM)
        .get('/api/handles/21.T1/a')
        .reply(async () => {
          failLate();
          await late;
          return [404, { responseCode: 100 }];
        });
      expect(await client.resolve(question)).toEqual({ kind: 'not-found' });
      expect(states()).toEqual(['open', 'half-open', 'closed']);
    });
  });

  test('does not count error responses or missing handles as failures', async () => {
    const { client, state } = createWatched();
    await refuse(client, 2);
    mockUpstream().reply(400, { responseCode: 301 });
    await client.resolve(question);
    await refuse(client, 2);
    await answerWell(client);
    await refuse(client, 2);
    expect(state()).toBe('closed');
  });
});
