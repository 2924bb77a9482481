import { describe, expect, test } from 'vitest';
import type { Message } from '../../src/cache/coherence/message.js';
import type { Down } from '../../src/process/cluster/messages.js';
import { Relay } from '../../src/process/cluster/relay.js';
import { isSettled, settled } from '../support/manual-clock.js';

/** The number that a relay gives to the first message that it passes on. */
const RELAYED = 1;

/** Workers 1 to `count`, and what each of them was sent since it last looked. */
function crew(
  count: number,
  late: ReadonlySet<number> = new Set(),
): { relay: Relay; sent: (worker: number) => Down[] } {
  const relay = new Relay((id) => late.has(id));
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
  test('is done when every other worker has heard it', async () => {
    const { relay, sent } = crew(3);
    relay.pass(1, { kind: 'tell', id: 7, line: 'left ask name' });
    expect(sent(2)).toEqual([{ kind: 'told', id: RELAYED, line: 'left ask name' }]);
    relay.pass(2, { kind: 'applied', id: RELAYED });
    await settled();
    expect(sent(1)).toEqual([]);
    relay.pass(3, { kind: 'applied', id: RELAYED });
    await settled();
    expect(sent(1)).toEqual([{ kind: 'done', id: 7 }]);
  });

  test('is done at once where there is no other worker', async () => {
    const { relay, sent } = crew(1);
    relay.pass(1, { kind: 'tell', id: 7, line: 'x' });
    await settled();
    expect(sent(1)).toEqual([{ kind: 'done', id: 7 }]);
  });

  test('does not wait for a worker that is gone', async () => {
    const { relay, sent } = crew(2);
    relay.pass(1, { kind: 'tell', id: 7, line: 'x' });
    relay.leave(2);
    await settled();
    expect(sent(1)).toContainEqual({ kind: 'done', id: 7 });
  });
});

describe('a message for all workers', () => {
  const forget: Message = { kind: 'forget', key: 'A' };

  test('is delivered when every worker has applied it, the one that published it included', async () => {
    const { relay, sent } = crew(2);
    const delivered = relay.deliver(forget, 1);
    for (const worker of [1, 2])
      expect(sent(worker)).toEqual([{ kind: 'apply', id: RELAYED, message: forget }]);
    relay.pass(1, { kind: 'applied', id: RELAYED });
    expect(await isSettled(delivered)).toBe(false);
    relay.pass(2, { kind: 'applied', id: RELAYED });
    expect(await isSettled(delivered)).toBe(true);
  });

  test('that an entry was replaced is not for the worker that has stored it', async () => {
    const { relay, sent } = crew(2);
    const replaced: Message = { kind: 'replaced', key: 'A' };
    const delivered = relay.deliver(replaced, 1);
    expect(sent(1)).toEqual([]);
    expect(sent(2)).toEqual([{ kind: 'apply', id: RELAYED, message: replaced }]);
    relay.pass(2, { kind: 'applied', id: RELAYED });
    expect(await isSettled(delivered)).toBe(true);
  });

  test('that came from another instance is for all', () => {
    const { relay, sent } = crew(2);
    void relay.deliver({ kind: 'replaced', key: 'A' });
    expect([sent(1), sent(2)].map(({ length }) => length)).toEqual([1, 1]);
  });

  test('is waited for by itself: another one that was applied does not count', async () => {
    const { relay } = crew(1);
    const [first, second] = [relay.deliver(forget), relay.deliver(forget)];
    relay.pass(1, { kind: 'applied', id: RELAYED + 1 });
    expect([await isSettled(first), await isSettled(second)]).toEqual([false, true]);
  });

  test('is delivered at once where there is no worker', async () => {
    expect(await isSettled(crew(0).relay.deliver(forget))).toBe(true);
  });

  test('does not wait for a worker whose lease is over, but is sent to it', async () => {
    const { relay, sent } = crew(2, new Set([2]));
    const delivered = relay.deliver(forget);
    relay.pass(1, { kind: 'applied', id: RELAYED });
    expect(await isSettled(delivered)).toBe(true);
    expect(sent(2)).toEqual([{ kind: 'apply', id: RELAYED, message: forget }]);
  });

  test('does not wait for a worker that ends', async () => {
    const { relay } = crew(1);
    const delivered = relay.deliver(forget);
    relay.leave(1);
    expect(await isSettled(delivered)).toBe(true);
  });
});

describe('a worker whose lease is over', () => {
  test('is told all the same, but not waited for', async () => {
    const { relay, sent } = crew(2, new Set([2]));
    relay.pass(1, { kind: 'tell', id: 7, line: 'x' });
    expect(sent(2)).toEqual([{ kind: 'told', id: RELAYED, line: 'x' }]);
    await settled();
    expect(sent(1)).toEqual([{ kind: 'done', id: 7 }]);
  });

  test('is not asked', () => {
    const { relay, sent } = crew(2, new Set([2]));
    relay.pass(1, { kind: 'ask', id: 3, owner: 2, key: 'A', handle: 'a' });
    expect(sent(2)).toEqual([]);
    expect(sent(1)).toEqual([{ kind: 'answered', id: 3, answer: {} }]);
  });

  test('is waited for no longer from then on', async () => {
    const late = new Set<number>();
    const { relay, sent } = crew(3, late);
    relay.pass(1, { kind: 'tell', id: 7, line: 'x' });
    relay.pass(3, { kind: 'applied', id: RELAYED });
    relay.pass(1, { kind: 'ask', id: 3, owner: 2, key: 'A', handle: 'a' });
    relay.pass(1, { kind: 'ask', id: 4, owner: 3, key: 'B', handle: 'b' });
    late.add(2);
    relay.passOverLate();
    await settled();
    expect(sent(1)).toEqual([
      { kind: 'answered', id: 3, answer: {} },
      { kind: 'done', id: 7 },
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
