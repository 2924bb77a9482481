import { describe, expect, test } from 'vitest';
import type { Down } from '../../src/workers/messages.js';
import { Relay } from '../../src/workers/relay.js';

/** Workers 1 to `count`, and what each of them was sent since it last looked. */
function crew(
  count: number,
  silent: ReadonlySet<number> = new Set(),
): { relay: Relay; sent: (worker: number) => Down[] } {
  const relay = new Relay((id) => silent.has(id));
  const boxes = new Map<number, Down[]>();
  for (let id = 1; id <= count; id++) {
    boxes.set(id, []);
    relay.join({ id, send: (message) => boxes.get(id)?.push(message) });
  }
  const sent = (worker: number): Down[] => boxes.get(worker)?.splice(0) ?? [];
  for (const id of boxes.keys()) sent(id);
  return { relay, sent };
}

describe('a line for all workers', () => {
  test('is done when every other worker has obeyed it', () => {
    const { relay, sent } = crew(3);
    relay.pass(1, { kind: 'tell', id: 7, line: 'forget - 0 A' });
    expect(sent(2)).toEqual([{ kind: 'told', id: 7, from: 1, line: 'forget - 0 A' }]);
    relay.pass(2, { kind: 'heard', id: 7, from: 1 });
    expect(sent(1)).toEqual([]);
    relay.pass(3, { kind: 'heard', id: 7, from: 1 });
    expect(sent(1)).toEqual([{ kind: 'done', id: 7 }]);
  });

  test('is done at once where there is no other worker', () => {
    const { relay, sent } = crew(1);
    relay.pass(1, { kind: 'tell', id: 7, line: 'x' });
    expect(sent(1)).toEqual([{ kind: 'done', id: 7 }]);
  });

  test('does not wait for a worker that is gone', () => {
    const { relay, sent } = crew(2);
    relay.pass(1, { kind: 'tell', id: 7, line: 'x' });
    relay.leave(2);
    expect(sent(1)).toContainEqual({ kind: 'done', id: 7 });
  });
});

describe('a worker that is silent', () => {
  test('is told all the same, but not waited for', () => {
    const { relay, sent } = crew(2, new Set([2]));
    relay.pass(1, { kind: 'tell', id: 7, line: 'x' });
    expect(sent(2)).toEqual([{ kind: 'told', id: 7, from: 1, line: 'x' }]);
    expect(sent(1)).toEqual([{ kind: 'done', id: 7 }]);
  });

  test('is not asked', () => {
    const { relay, sent } = crew(2, new Set([2]));
    relay.pass(1, { kind: 'ask', id: 3, owner: 2, key: 'A', handle: 'a' });
    expect(sent(2)).toEqual([]);
    expect(sent(1)).toEqual([{ kind: 'answered', id: 3, answer: {} }]);
  });

  test('is waited for no longer once it has become that', () => {
    const silent = new Set<number>();
    const { relay, sent } = crew(3, silent);
    relay.pass(1, { kind: 'tell', id: 7, line: 'x' });
    relay.pass(3, { kind: 'heard', id: 7, from: 1 });
    relay.pass(1, { kind: 'ask', id: 3, owner: 2, key: 'A', handle: 'a' });
    relay.pass(1, { kind: 'ask', id: 4, owner: 3, key: 'B', handle: 'b' });
    silent.add(2);
    relay.passOverSilent();
    expect(sent(1)).toEqual([
      { kind: 'done', id: 7 },
      { kind: 'answered', id: 3, answer: {} },
    ]);
  });
});

describe('a question to the worker that answers for a key', () => {
  test('goes there, and its answer comes back', () => {
    const { relay, sent } = crew(2);
    relay.pass(1, { kind: 'ask', id: 3, owner: 2, key: 'A', handle: 'a' });
    expect(sent(2)).toEqual([{ kind: 'asked', id: 3, from: 1, key: 'A', handle: 'a' }]);
    relay.pass(2, { kind: 'answer', id: 3, from: 1, answer: { outcome: { kind: 'empty' } } });
    expect(sent(1)).toEqual([{ kind: 'answered', id: 3, answer: { outcome: { kind: 'empty' } } }]);
  });

  test('is answered with nothing as soon as that worker ends before it has answered', () => {
    const { relay, sent } = crew(3);
    relay.pass(1, { kind: 'ask', id: 3, owner: 2, key: 'A', handle: 'a' });
    relay.pass(3, { kind: 'ask', id: 3, owner: 1, key: 'B', handle: 'b' });
    relay.leave(2);
    expect(sent(1)).toContainEqual({ kind: 'answered', id: 3, answer: {} });
    expect(sent(3)).not.toContainEqual({ kind: 'answered', id: 3, answer: {} });
  });

  test('is answered with nothing when that worker is gone', () => {
    const { relay, sent } = crew(1);
    relay.pass(1, { kind: 'ask', id: 3, owner: 9, key: 'A', handle: 'a' });
    expect(sent(1)).toEqual([{ kind: 'answered', id: 3, answer: {} }]);
  });
});

describe('turns to change a handle', () => {
  const yourTurn = (id: number, freeMs: unknown = expect.any(Number)) => ({ kind: 'your-turn', id, freeMs });

  test('are given one after the other, key by key', () => {
    const { relay, sent } = crew(2);
    relay.pass(1, { kind: 'turn', id: 1, key: 'A', holder: 'x' });
    relay.pass(2, { kind: 'turn', id: 1, key: 'A', holder: 'x' });
    relay.pass(2, { kind: 'turn', id: 2, key: 'B', holder: 'x' });
    expect([sent(1), sent(2)]).toEqual([[yourTurn(1)], [yourTurn(2)]]);
    relay.pass(1, { kind: 'turn-over', id: 1, key: 'A' });
    expect(sent(2)).toEqual([yourTurn(1, 0)]);
  });

  test('of a worker that is gone are over', () => {
    const { relay, sent } = crew(2);
    relay.pass(1, { kind: 'turn', id: 1, key: 'A', holder: 'x' });
    relay.pass(2, { kind: 'turn', id: 5, key: 'A', holder: 'x' });
    relay.leave(1);
    expect(sent(2)).toContainEqual(yourTurn(5, 0));
  });

  test('that nobody waits for any more are passed over', () => {
    const { relay, sent } = crew(3);
    relay.pass(1, { kind: 'turn', id: 1, key: 'A', holder: 'x' });
    relay.pass(2, { kind: 'turn', id: 1, key: 'A', holder: 'x' });
    relay.pass(3, { kind: 'turn', id: 1, key: 'A', holder: 'x' });
    relay.pass(2, { kind: 'turn-over', id: 1, key: 'A' });
    relay.pass(1, { kind: 'turn-over', id: 1, key: 'A' });
    expect([sent(2), sent(3)]).toEqual([[], [yourTurn(1, 0)]]);
  });

  test('are shared among callers, on whatever worker they wait', () => {
    const { relay, sent } = crew(2);
    for (const id of [1, 2, 3]) relay.pass(1, { kind: 'turn', id, key: 'A', holder: 'many' });
    relay.pass(2, { kind: 'turn', id: 1, key: 'A', holder: 'one' });
    relay.pass(1, { kind: 'turn-over', id: 1, key: 'A' });
    expect([sent(1), sent(2)]).toEqual([[yourTurn(1)], [yourTurn(1, 0)]]);
  });

  test('are refused at once where a caller waits for too many', () => {
    const { relay, sent } = crew(2);
    for (let id = 1; id <= 128; id++) relay.pass(1, { kind: 'turn', id, key: 'A', holder: 'many' });
    sent(1);
    relay.pass(2, { kind: 'turn', id: 7, key: 'A', holder: 'many' });
    relay.pass(2, { kind: 'turn', id: 8, key: 'A', holder: 'one' });
    expect(sent(2)).toEqual([{ kind: 'no-turn', id: 7 }]);
  });
});
