import { describe, expect, it } from 'vitest';
import { type AdaptiveLimit, nextLimit } from '../../src/upstream/concurrency-limiter.js';
import type { CallerClass } from '../../src/upstream/caller.js';
import { FairQueue, type PlacesInUse, type Waiter } from '../../src/upstream/fair-queue.js';

interface Named extends Waiter {
  name: string;
}

const waiter = (name: string, client: string, inClass: CallerClass = 'normal'): Named => ({
  name,
  key: undefined,
  caller: { class: inClass, client },
});

/** Current time for the queues. */
let time = 0;
const now = (): number => time;

const FREE = { mayRun: () => true, runningOf: () => 0 };

/** Returns the names in service order. */
function served(queue: FairQueue<Named>, places: PlacesInUse = FREE): string[] {
  const names: string[] = [];
  for (let next = queue.takeNext(places); next; next = queue.takeNext(places)) names.push(next.name);
  return names;
}

function queueOf(...waiters: Named[]): FairQueue<Named> {
  const queue = new FairQueue<Named>(now);
  for (const one of waiters) queue.add(one);
  return queue;
}

describe('fair queue', () => {
  it('serves clients round-robin regardless of their request counts', () => {
    const greedy = [1, 2, 3, 4].map((at) => waiter(`greedy ${at}`, 'greedy'));
    const queue = queueOf(...greedy, waiter('polite 1', 'a'), waiter('polite 2', 'b'));
    expect(served(queue)).toEqual(['greedy 1', 'polite 1', 'polite 2', 'greedy 2', 'greedy 3', 'greedy 4']);
  });

  it('checks a client’s share once, regardless of its number of queued requests', () => {
    const queue = queueOf(...Array.from({ length: 100 }, (_, at) => waiter(`greedy ${at}`, 'greedy')));
    let checks = 0;
    const mayRun = (): boolean => {
      checks++;
      return false;
    };
    expect(queue.takeNext({ ...FREE, mayRun })).toBeUndefined();
    expect(checks).toBe(1);
  });

  it('serves the client with the fewest permits in use first', () => {
    const running: Record<string, number> = { a: 3, b: 1 };
    const queue = queueOf(waiter('a', 'a'), waiter('b', 'b'));
    expect(served(queue, { ...FREE, runningOf: (client = '') => running[client] ?? 0 })).toEqual(['b', 'a']);
  });

  it('prefers a returning client to a recently served client', () => {
    const queue = queueOf(
      waiter('polite 1', 'polite'),
      waiter('greedy 1', 'greedy'),
      waiter('greedy 2', 'greedy'),
    );
    const next = (): string | undefined => queue.takeNext(FREE)?.name;
    expect(next()).toBe('polite 1');
    time += 600;
    expect(next()).toBe('greedy 1');
    time += 100;
    queue.add(waiter('polite 2', 'polite'));
    expect([next(), next()]).toEqual(['polite 2', 'greedy 2']);
  });

  it('prefers a client that has waited for a second to a new client', () => {
    const queue = queueOf(waiter('old 1', 'old'), waiter('old 2', 'old'));
    const next = (): string | undefined => queue.takeNext(FREE)?.name;
    expect(next()).toBe('old 1');
    time += 999;
    queue.add(waiter('new 1', 'new 1'));
    time += 2;
    queue.add(waiter('new 2', 'new 2'));
    expect([next(), next(), next()]).toEqual(['new 1', 'old 2', 'new 2']);
  });

  it('gives most permits to preferred clients, without starving the others', () => {
    const classes = ['preferred', 'normal', 'background'] as const;
    const queue = queueOf(
      ...classes.flatMap((name) =>
        Array.from({ length: 100 }, (_, at) => waiter(name, `${name}${at}`, name)),
      ),
    );
    const first = served(queue).slice(0, 105);
    const countOf = (name: string): number => first.filter((one) => one === name).length;
    expect(classes.map(countOf)).toEqual([80, 20, 5]);
  });

  it('skips clients that are ineligible for a permit', () => {
    const queue = queueOf(waiter('a', 'a'), waiter('b', 'b'));
    expect(served(queue, { ...FREE, mayRun: (one: Waiter) => one.caller.client !== 'a' })).toEqual(['b']);
    expect(queue.size).toBe(1);
  });

  it('drops the last request of the busiest client when full, unless the new request has a lower class', () => {
    const queue = queueOf(
      waiter('g1', 'g'),
      waiter('g2', 'g'),
      waiter('g3', 'g'),
      waiter('p', 'p', 'preferred'),
    );
    expect(queue.takeDisplaced(waiter('new', 'a'))?.name).toBe('g3');
    expect(queue.takeDisplaced(waiter('g4', 'g'))).toBeUndefined();
    expect(queue.takeDisplaced(waiter('late', 'b', 'background'))).toBeUndefined();
    expect(queue.takeDisplaced(waiter('first', 'b', 'preferred'))?.name).toBe('g2');
  });
});

describe('adaptive concurrency limit', () => {
  const BOUNDS = { min: 8, max: 64 };
  const START: AdaptiveLimit = { limit: 64, quietMs: undefined };

  /** Simulates a server that handles `capacity` requests per second, under load for `samples` samples. */
  function under(capacity: number, state: AdaptiveLimit, samples: number): AdaptiveLimit {
    let at = state;
    for (let sample = 0; sample < samples; sample++) {
      const queueingMs = (at.limit / capacity) * 1000;
      at = nextLimit(at, { latenciesMs: [Math.max(5, queueingMs)], running: at.limit }, BOUNDS);
    }
    return at;
  }

  it('stays at its maximum for a fast server', () => {
    expect(under(20_000, START, 100).limit).toBe(64);
  });

  it('decreases with the capacity and recovers with it', () => {
    const fast = under(20_000, START, 20);
    const slow = under(100, fast, 20);
    expect(slow.limit).toBeLessThan(20);
    expect(under(100, slow, 500).limit).toBeLessThan(30);
    expect(under(20_000, slow, 60).limit).toBe(64);
  });

  it('drops to its minimum after timeouts, or halves when the normal latency is known', () => {
    const sample = { latenciesMs: [Infinity, Infinity, 5], running: 64 };
    expect(nextLimit({ limit: 64, quietMs: undefined }, sample, BOUNDS).limit).toBe(8);
    expect(nextLimit({ limit: 64, quietMs: 5 }, sample, BOUNDS).limit).toBe(32);
  });

  it('does not increase while unused', () => {
    const state = { limit: 10, quietMs: 5 };
    expect(nextLimit(state, { latenciesMs: [5], running: 3 }, BOUNDS)).toEqual(state);
  });
});
