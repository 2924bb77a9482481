// The lock queue: fair to clients, bounded, and aware of the last release.
import { describe, expect, test, vi } from 'vitest';
import { LockQueue, type QueueEntry } from '../../src/write/lock/lock-queue.js';

/** Starts a queue for one key that records the clients granted the lock. */
function startQueue() {
  const queue = new LockQueue();
  const grants: string[] = [];
  let current: QueueEntry | undefined;
  const freeMs: number[] = [];
  const enter = (client: string, key = 'KEY'): QueueEntry | undefined => {
    const entry: QueueEntry = {
      client,
      grant: (free) => {
        current = entry;
        grants.push(client);
        freeMs.push(free);
      },
    };
    return queue.enter(key, entry) ? entry : undefined;
  };
  const leave = (entry: QueueEntry | undefined): void => {
    if (entry) queue.leave('KEY', entry);
  };
  const releaseCurrent = (): void => {
    leave(current);
  };
  return { queue, grants, freeMs, enter, leave, releaseCurrent };
}

describe('lock queue grants', () => {
  test('rotate among the waiting clients', () => {
    const { grants, enter, releaseCurrent } = startQueue();
    for (const client of ['a', 'a', 'a', 'a', 'b', 'c', 'b']) enter(client);
    for (let count = 1; count < 7; count++) releaseCurrent();
    expect(grants).toEqual(['a', 'b', 'c', 'a', 'b', 'a', 'a']);
  });

  test('reach a new client before the next entry of a client that has many', () => {
    const { grants, enter, leave } = startQueue();
    const first = enter('many');
    const second = enter('many');
    enter('many');
    leave(first);
    enter('new');
    leave(second);
    expect(grants).toEqual(['many', 'many', 'new']);
  });

  test('skip an entry that has been withdrawn', () => {
    const { grants, enter, leave } = startQueue();
    const [first, second] = [enter('a'), enter('b')];
    enter('c');
    leave(second);
    leave(first);
    expect(grants).toEqual(['a', 'c']);
  });
});

describe('lock queue bounds', () => {
  test('leave room for other clients when one client has reached its maximum', () => {
    const { enter } = startQueue();
    const entries = Array.from({ length: 130 }, () => enter('many'));
    expect(entries.filter((entry) => entry === undefined)).toHaveLength(2);
    expect(enter('one')).toBeDefined();
    expect(enter('many', 'OTHER')).toBeDefined();
  });

  test('limit all clients of a key in total', () => {
    const { enter } = startQueue();
    const entries = Array.from({ length: 1030 }, (_, at) => enter(`client ${at}`));
    expect(entries.filter((entry) => entry === undefined)).toHaveLength(6);
  });
});

describe('lock queue free time', () => {
  /** Starts a queue with a clock that advances by a millisecond per reading. */
  const startTimed = () => {
    let now = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => ++now);
    return { ...startQueue(), now: () => now };
  };

  test('is 0 for a client that waited, and otherwise starts at the last release', () => {
    const { freeMs, enter, leave, now } = startTimed();
    const [first, second] = [enter('a'), enter('b')];
    leave(first);
    leave(second);
    const released = now();
    enter('c');
    expect(freeMs.slice(1)).toEqual([0, now() - released]);
  });

  test('is never overestimated for a key whose release time was dropped', () => {
    const { queue, freeMs, enter, leave, now } = startTimed();
    leave(enter('a'));
    const released = now();
    for (let count = 0; count < 5000; count++) {
      const entry = enter('x', `KEY ${count}`);
      if (entry) queue.leave(`KEY ${count}`, entry);
    }
    enter('a');
    expect(freeMs.at(-1)).toBeGreaterThan(0);
    expect(freeMs.at(-1)).toBeLessThan(now() - released);
  });
});
