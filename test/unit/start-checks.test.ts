import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { addStartChecks, createReadiness } from '../../src/observe/health.js';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

interface State {
  redis: 'up' | 'down' | 'disabled';
  /** Number of entries in memory. */
  entries: number;
  isHeldInRedis: boolean;
}

function start(state: State, { url = 'https://handle.example.org' } = {}) {
  const readiness = createReadiness();
  const cache = {
    memory: { usage: () => [{ store: 'found', entries: state.entries, bytes: 0 }] },
    redisState: () => state.redis,
    isRedisReadable: () => state.redis === 'up',
    holdsRedisEntry: () => Promise.resolve(state.isHeldInRedis),
  };
  const parts = { readiness, cache };
  const config = { upstream: { url }, upstreams: [] };
  const upstreamAnswered = addStartChecks(config as never, parts);
  return { upstreamAnswered, notReady: () => readiness.report().notReady };
}

const ALONE: State = { redis: 'disabled', entries: 0, isHeldInRedis: false };
const WITH_REDIS: State = { ...ALONE, redis: 'down' };

describe('readiness at startup', () => {
  test('requires an upstream response', () => {
    const { upstreamAnswered, notReady } = start(ALONE);
    expect(notReady()).toEqual(['upstream']);
    upstreamAnswered();
    expect(notReady()).toEqual([]);
  });

  test('requires records when there is no upstream', () => {
    const state = { ...ALONE };
    const { notReady } = start(state, { url: 'none' });
    expect(notReady()).toEqual(['records']);
    state.entries = 1;
    expect(notReady()).toEqual([]);
  });

  test('persists once memory has contained an entry', () => {
    const state = { ...ALONE, entries: 1 };
    const { notReady } = start(state);
    expect(notReady()).toEqual([]);
    state.entries = 0;
    expect(notReady()).toEqual([]);
  });

  test('is reached when Redis contains an entry', async () => {
    const { notReady } = start({ ...WITH_REDIS, redis: 'up', isHeldInRedis: true });
    notReady();
    await Promise.resolve();
    await Promise.resolve();
    expect(notReady()).toEqual([]);
  });

  test('waits at most one second for the first Redis connection', () => {
    const { upstreamAnswered, notReady } = start({ ...WITH_REDIS });
    upstreamAnswered();
    vi.advanceTimersByTime(999);
    expect(notReady()).toEqual(['redis']);
    vi.advanceTimersByTime(1);
    expect(notReady()).toEqual([]);
  });

  test('does not wait for Redis after the first connection is lost', () => {
    const state: State = { ...WITH_REDIS };
    const { upstreamAnswered, notReady } = start(state);
    upstreamAnswered();
    expect(notReady()).toEqual(['redis']);
    state.redis = 'up';
    expect(notReady()).toEqual([]);
    state.redis = 'down';
    expect(notReady()).toEqual([]);
  });
});
