// The queue for a lock: fair among holders, bounded, and with a memory of when a key was released.
import { describe, expect, test } from 'vitest';
import { LockQueue, type QueueEntry } from '../../src/coordination/lock-queue.js';

/** A queue for one key, and who has got the turn so far. */
function startQueue() {
  const queue = new LockQueue();
  const turns: string[] = [];
  let current: QueueEntry | undefined;
  const freeMs: number[] = [];
  const enter = (holder: string, key = 'KEY'): QueueEntry | undefined => {
    const place: QueueEntry = {
      holder,
      grant: (free) => {
        current = place;
        turns.push(holder);
        freeMs.push(free);
      },
    };
    return queue.enter(key, place) ? place : undefined;
  };
  const leave = (place: QueueEntry | undefined): void => {
    queue.leave('KEY', (other) => other === place);
  };
  const endTurn = (): void => {
    leave(current);
  };
  return { queue, turns, freeMs, enter, leave, endTurn };
}

describe('turns', () => {
  test('go round among those who wait', () => {
    const { turns, enter, endTurn } = startQueue();
    for (const holder of ['a', 'a', 'a', 'a', 'b', 'c', 'b']) enter(holder);
    for (let count = 1; count < 7; count++) endTurn();
    expect(turns).toEqual(['a', 'b', 'c', 'a', 'b', 'a', 'a']);
  });

  test('come to a new caller before the next of one who has many', () => {
    const { turns, enter, leave } = startQueue();
    const first = enter('many');
    const second = enter('many');
    enter('many');
    leave(first);
    enter('new');
    leave(second);
    expect(turns).toEqual(['many', 'many', 'new']);
  });

  test('are not given to a place that was taken back', () => {
    const { turns, enter, leave } = startQueue();
    const [first, second] = [enter('a'), enter('b')];
    enter('c');
    leave(second);
    leave(first);
    expect(turns).toEqual(['a', 'c']);
  });
});

describe('the bounds', () => {
  test('leave room for others when one has all the places that one may have', () => {
    const { enter } = startQueue();
    const places = Array.from({ length: 130 }, () => enter('many'));
    expect(places.filter((place) => place === undefined)).toHaveLength(2);
    expect(enter('one')).toBeDefined();
    expect(enter('many', 'OTHER')).toBeDefined();
  });

  test('hold for all callers of a key together', () => {
    const { enter } = startQueue();
    const places = Array.from({ length: 1030 }, (_, at) => enter(`caller ${at}`));
    expect(places.filter((place) => place === undefined)).toHaveLength(6);
  });
});

describe('how long a key was free', () => {
  test('is nothing for one who waited, and counts from the release for the next', () => {
    const { freeMs, enter, leave } = startQueue();
    const before = performance.now();
    const [first, second] = [enter('a'), enter('b')];
    leave(first);
    const released = performance.now();
    leave(second);
    enter('c');
    expect(freeMs[1]).toBe(0);
    expect(freeMs[2]).toBeLessThanOrEqual(performance.now() - released);
    expect(freeMs[2]).toBeLessThan(performance.now() - before);
  });

  test('is never overrated for a key whose release is not known any more', () => {
    const { queue, freeMs, enter, leave } = startQueue();
    leave(enter('a'));
    const released = performance.now();
    for (let count = 0; count < 5000; count++) {
      enter('x', `KEY ${count}`);
      queue.leave(`KEY ${count}`, () => true);
    }
    enter('a');
    expect(freeMs.at(-1)).toBeLessThanOrEqual(performance.now() - released);
  });
});
