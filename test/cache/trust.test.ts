// Since when an entry can be trusted, while messages are heard and while they are not.
import { expect, test } from 'vitest';
import { PROOF_LIFE_MS, createTrust } from '../../src/cache/trust.js';

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
  /** @param agoMs how long ago that was said which is heard now */
  const prove = (agoMs = 0): void => {
    trust.proved(steady - agoMs);
  };
  prove();
  trust.redisIs('up');
  return { trust, clock, pass, prove };
}

test('while messages are heard every entry is trusted', () => {
  const { trust, pass, prove } = start();
  for (let second = 0; second < 60; second++) {
    pass(1000);
    prove();
    expect(trust.since()).toBe(0);
  }
});

test('after standing still none is, until it is proved that messages are heard', () => {
  const { trust, clock, pass, prove } = start();
  pass(PROOF_LIFE_MS);
  expect(trust.since()).toBe(clock.now);
  prove();
  expect(trust.since()).toBe(0);
});

test('a proof counts from the moment at which it was asked for', () => {
  const { trust, clock, pass, prove } = start();
  pass(PROOF_LIFE_MS);
  prove(PROOF_LIFE_MS - 100);
  expect(trust.since()).toBe(0);
  pass(100);
  expect(trust.since()).toBe(clock.now);
});

test('a clock that is set does not look like standing still', () => {
  const { trust, clock } = start();
  clock.now += 3_600_000;
  expect(trust.since()).toBe(0);
});

test('without Redis only young entries are, and for a while after it is back', () => {
  const { trust, clock, pass, prove } = start();
  trust.redisIs('lost');
  pass(60_000);
  expect(trust.since()).toBe(clock.now - LOST_MAX_AGE_MS);
  prove();
  trust.redisIs('up');
  expect(trust.since()).toBe(clock.now - LOST_MAX_AGE_MS);
  for (let second = 0; second < 5; second++) {
    pass(1000);
    prove();
  }
  expect(trust.since()).toBe(0);
});
