// Since when an entry can be trusted, while messages are heard and while they are not.
import { expect, test } from 'vitest';
import { createTrust } from '../../src/cache/trust.js';

const LOST_MAX_AGE_MS = 5000;

function start() {
  let steady = 0;
  const clock = { now: 1_000_000 };
  const trust = createTrust({
    now: () => clock.now,
    steadyNow: () => steady,
    lostMaxAgeMs: LOST_MAX_AGE_MS,
  });
  const pass = (ms: number): void => {
    steady += ms;
    clock.now += ms;
  };
  trust.proved();
  trust.redisIs('up');
  return { trust, clock, pass };
}

test('while messages are heard every entry is trusted', () => {
  const { trust, pass } = start();
  for (let second = 0; second < 60; second++) {
    pass(1000);
    trust.proved();
    expect(trust.since()).toBe(0);
  }
});

test('after standing still only young entries are, until it is proved that messages are heard', () => {
  const { trust, clock, pass } = start();
  pass(10_000);
  expect(trust.since()).toBe(clock.now - LOST_MAX_AGE_MS);
  trust.proved();
  expect(trust.since()).toBe(0);
});

test('a clock that is set does not look like standing still', () => {
  const { trust, clock } = start();
  clock.now += 3_600_000;
  expect(trust.since()).toBe(0);
});

test('without Redis only young entries are, and for a while after it is back', () => {
  const { trust, clock, pass } = start();
  trust.redisIs('lost');
  expect(trust.since()).toBe(clock.now - LOST_MAX_AGE_MS);
  trust.redisIs('up');
  expect(trust.since()).toBe(clock.now - LOST_MAX_AGE_MS);
  for (let second = 0; second < 5; second++) {
    pass(1000);
    trust.proved();
  }
  expect(trust.since()).toBe(0);
});
