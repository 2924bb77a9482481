// The lock queue: fair to clients, bounded, and aware of the last release.
import { describe, expect, test } from 'vitest';
import { LockQueue } from '../../src/write/lock.js';

type Leave = (() => void) | undefined;

/** Starts a queue on a clock that advances by a millisecond per reading, and records its grants. */
function startQueue() {
  let nowMs = 0;
  const now = (): number => ++nowMs;
  const queue = new LockQueue(now);
  const grants: string[] = [];
  const freeSince: number[] = [];
  let releaseCurrent: Leave;
  const enter = (client: string, { key = 'KEY', network = `of ${client}`, prefix = '21.T1' } = {}): Leave => {
    const grant = (since: number): void => {
      grants.push(client);
      freeSince.push(since);
      releaseCurrent = () => leave?.();
    };
    const leave = queue.enter(key, { client, network, prefix }, grant);
    return leave;
  };
  const pass = (ms: number): void => {
    nowMs += ms;
  };
  return { queue, grants, freeSince, enter, now, pass, release: () => releaseCurrent?.() };
}

describe('lock queue grants', () => {
  test('rotate among the waiting clients', () => {
    const { grants, enter, release } = startQueue();
    for (const client of ['a', 'a', 'a', 'a', 'b', 'c', 'b']) enter(client);
    for (let count = 1; count < 7; count++) release();
    expect(grants).toEqual(['a', 'b', 'c', 'a', 'b', 'a', 'a']);
  });

  test('reach a new client before the next entry of a client that has many', () => {
    const { grants, enter } = startQueue();
    const first = enter('many');
    const second = enter('many');
    enter('many');
    first?.();
    enter('new');
    second?.();
    expect(grants).toEqual(['many', 'many', 'new']);
  });

  test('skip an entry that has been withdrawn', () => {
    const { grants, enter } = startQueue();
    const [first, second] = [enter('a'), enter('b')];
    enter('c');
    second?.();
    first?.();
    expect(grants).toEqual(['a', 'c']);
  });

  test('reach the other entries of a client that withdraws one', () => {
    const { grants, enter, release } = startQueue();
    for (const client of ['a', 'b']) enter(client);
    enter('b')?.();
    enter('a')?.();
    for (let count = 1; count < 3; count++) release();
    expect(grants).toEqual(['a', 'b']);
  });
});

describe('lock queue bounds', () => {
  test('leave room for other clients when one client has reached its maximum', () => {
    const { enter } = startQueue();
    const entries = Array.from({ length: 130 }, () => enter('many'));
    expect(entries.filter((entry) => entry === undefined)).toHaveLength(2);
    expect(enter('one')).toBeDefined();
    expect(enter('many', { key: 'OTHER' })).toBeDefined();
  });

  test('limit all clients of a key in total', () => {
    const { enter } = startQueue();
    const entries = Array.from({ length: 1030 }, (_, at) => enter(`client ${at}`));
    expect(entries.filter((entry) => entry === undefined)).toHaveLength(6);
  });

  test('leave one place to a login for ten seconds after it was rejected for this prefix', () => {
    const { queue, enter, pass } = startQueue();
    const low = { client: '300:A/B', network: 'of 300:A/B', prefix: '21.T1' };
    queue.refuse(low);
    const leave = enter(low.client);
    expect(leave).toBeDefined();
    expect(enter(low.client)).toBeUndefined();
    expect(enter(low.client, { key: 'OTHER' })).toBeUndefined();
    expect(enter(low.client, { key: 'FOREIGN', prefix: '21.T2' })).toBeDefined();
    expect(enter('300:A/C')).toBeDefined();
    leave?.();
    expect(enter(low.client)).toBeDefined();
    expect(enter(low.client)).toBeUndefined();
    pass(10_001);
    expect(enter(low.client)).toBeDefined();
  });

  test('limit a network to 256 entries on all keys of a prefix, for any number of logins', () => {
    const { enter } = startQueue();
    const network = '192.0.2.0/24';
    for (let at = 0; at < 256; at++)
      expect(enter(`300:A/${at}`, { network, key: `KEY ${at % 2}` })).toBeDefined();
    expect(enter('300:A/new', { network })).toBeUndefined();
    expect(enter('300:A/new', { network: '198.51.100.0/24' })).toBeDefined();
    // Another server may have this prefix, which does not hang.
    expect(enter('300:A/new', { network, key: 'OTHER', prefix: '21.T2' })).toBeDefined();
  });
});

describe('lock queue free time', () => {
  test('is the time of the grant for a client that waited, and otherwise that of the last release', () => {
    const { freeSince, enter, now } = startQueue();
    const [first, second] = [enter('a'), enter('b')];
    const granted = now() + 1;
    first?.();
    const released = now() + 1;
    second?.();
    enter('c');
    const startedAt = 1;
    expect(freeSince).toEqual([startedAt, granted, released]);
  });

  test('is never overestimated for a key whose release time was dropped', () => {
    const { freeSince, enter, now } = startQueue();
    enter('a')?.();
    const released = now();
    for (let count = 0; count < 5000; count++) enter('x', { key: `KEY ${count}` })?.();
    enter('a');
    expect(freeSince.at(-1)).toBeGreaterThan(released);
    expect(freeSince.at(-1)).toBeLessThan(now());
  });
});
