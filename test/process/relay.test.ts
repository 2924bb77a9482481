import { describe, expect, test } from 'vitest';
import type { Message } from '../../src/cache/coherence/message.js';
import type { PeerMessage } from '../../src/process/cluster/messages.js';
import { Relay } from '../../src/process/cluster/relay.js';
import { isSettled, settled } from '../support/manual-clock.js';

/** The id of a relay's first message. */
const RELAYED = 1;

/** Workers 1 to `count`; `sent` takes the messages that a worker has received since the last call. */
function startWorkers(
  count: number,
  late: ReadonlySet<number> = new Set(),
): { relay: Relay; sent: (worker: number) => PeerMessage[] } {
  const relay = new Relay((id) => late.has(id));
  const boxes = new Map<number, PeerMessage[]>();
  for (let id = 1; id <= count; id++) {
    boxes.set(id, []);
    relay.join({ id, send: (message) => boxes.get(id)?.push(message) });
  }
  const sent = (worker: number): PeerMessage[] => boxes.get(worker)?.splice(0) ?? [];
  for (const id of boxes.keys()) sent(id);
  return { relay, sent };
}

describe('a minted name', () => {
  test('is delivered when every other worker has acknowledged it', async () => {
    const { relay, sent } = startWorkers(3);
    relay.receive(1, { kind: 'coordination', id: 7, line: 'left ask name' });
    expect(sent(2)).toEqual([{ kind: 'coordination', id: RELAYED, line: 'left ask name' }]);
    relay.receive(2, { kind: 'applied', id: RELAYED });
    await settled();
    expect(sent(1)).toEqual([]);
    relay.receive(3, { kind: 'applied', id: RELAYED });
    await settled();
    expect(sent(1)).toEqual([{ kind: 'delivered', id: 7 }]);
  });

  test('is delivered at once without other workers', async () => {
    const { relay, sent } = startWorkers(1);
    relay.receive(1, { kind: 'coordination', id: 7, line: 'x' });
    await settled();
    expect(sent(1)).toEqual([{ kind: 'delivered', id: 7 }]);
  });

  test('does not wait for an exited worker', async () => {
    const { relay, sent } = startWorkers(2);
    relay.receive(1, { kind: 'coordination', id: 7, line: 'x' });
    relay.leave(2);
    await settled();
    expect(sent(1)).toContainEqual({ kind: 'delivered', id: 7 });
  });
});

describe('a message', () => {
  const forget: Message = { kind: 'forget', key: 'A' };

  test('is delivered when every worker has acknowledged it, the publisher included', async () => {
    const { relay, sent } = startWorkers(2);
    const delivered = relay.deliver(forget, 1);
    for (const worker of [1, 2])
      expect(sent(worker)).toEqual([{ kind: 'apply', id: RELAYED, message: forget }]);
    relay.receive(1, { kind: 'applied', id: RELAYED });
    expect(await isSettled(delivered)).toBe(false);
    relay.receive(2, { kind: 'applied', id: RELAYED });
    expect(await isSettled(delivered)).toBe(true);
  });

  test('about a replaced entry skips the worker that stored it', async () => {
    const { relay, sent } = startWorkers(2);
    const replaced: Message = { kind: 'replaced', key: 'A' };
    const delivered = relay.deliver(replaced, 1);
    expect(sent(1)).toEqual([]);
    expect(sent(2)).toEqual([{ kind: 'apply', id: RELAYED, message: replaced }]);
    relay.receive(2, { kind: 'applied', id: RELAYED });
    expect(await isSettled(delivered)).toBe(true);
  });

  test('from another instance goes to all workers', () => {
    const { relay, sent } = startWorkers(2);
    void relay.deliver({ kind: 'replaced', key: 'A' });
    expect([sent(1), sent(2)].map(({ length }) => length)).toEqual([1, 1]);
  });

  test('has acknowledgements of its own', async () => {
    const { relay } = startWorkers(1);
    const [first, second] = [relay.deliver(forget), relay.deliver(forget)];
    relay.receive(1, { kind: 'applied', id: RELAYED + 1 });
    expect([await isSettled(first), await isSettled(second)]).toEqual([false, true]);
  });

  test('is delivered at once without workers', async () => {
    expect(await isSettled(startWorkers(0).relay.deliver(forget))).toBe(true);
  });

  test('does not wait for a worker with an expired lease, but is sent to it', async () => {
    const { relay, sent } = startWorkers(2, new Set([2]));
    const delivered = relay.deliver(forget);
    relay.receive(1, { kind: 'applied', id: RELAYED });
    expect(await isSettled(delivered)).toBe(true);
    expect(sent(2)).toEqual([{ kind: 'apply', id: RELAYED, message: forget }]);
  });

  test('does not wait for a worker that exits', async () => {
    const { relay } = startWorkers(1);
    const delivered = relay.deliver(forget);
    relay.leave(1);
    expect(await isSettled(delivered)).toBe(true);
  });
});

describe('a worker with an expired lease', () => {
  test('receives messages but needs no acknowledgement', async () => {
    const { relay, sent } = startWorkers(2, new Set([2]));
    relay.receive(1, { kind: 'coordination', id: 7, line: 'x' });
    expect(sent(2)).toEqual([{ kind: 'coordination', id: RELAYED, line: 'x' }]);
    await settled();
    expect(sent(1)).toEqual([{ kind: 'delivered', id: 7 }]);
  });

  test('loads for no other worker', () => {
    const { relay, sent } = startWorkers(2, new Set([2]));
    relay.receive(1, { kind: 'load', id: 3, owner: 2, key: 'A', handle: 'a' });
    expect(sent(2)).toEqual([]);
    expect(sent(1)).toEqual([{ kind: 'loaded', id: 3, answer: {} }]);
  });

  test('stops delaying deliveries and loads', async () => {
    const late = new Set<number>();
    const { relay, sent } = startWorkers(3, late);
    relay.receive(1, { kind: 'coordination', id: 7, line: 'x' });
    relay.receive(3, { kind: 'applied', id: RELAYED });
    relay.receive(1, { kind: 'load', id: 3, owner: 2, key: 'A', handle: 'a' });
    relay.receive(1, { kind: 'load', id: 4, owner: 3, key: 'B', handle: 'b' });
    late.add(2);
    relay.releaseExpired();
    await settled();
    expect(sent(1)).toEqual([
      { kind: 'loaded', id: 3, answer: {} },
      { kind: 'delivered', id: 7 },
    ]);
  });
});

describe('a load by the owner of a key', () => {
  test('reaches the owner, and its answer comes back', () => {
    const { relay, sent } = startWorkers(2);
    relay.receive(1, { kind: 'load', id: 3, owner: 2, key: 'A', handle: 'a' });
    expect(sent(2)).toEqual([{ kind: 'load', id: 3, from: 1, key: 'A', handle: 'a' }]);
    relay.receive(2, { kind: 'loaded', id: 3, from: 1, answer: { outcome: { kind: 'empty' } } });
    expect(sent(1)).toEqual([{ kind: 'loaded', id: 3, answer: { outcome: { kind: 'empty' } } }]);
  });

  test('ends without an answer when the owner exits', () => {
    const { relay, sent } = startWorkers(3);
    relay.receive(1, { kind: 'load', id: 3, owner: 2, key: 'A', handle: 'a' });
    relay.receive(3, { kind: 'load', id: 3, owner: 1, key: 'B', handle: 'b' });
    relay.leave(2);
    expect(sent(1)).toContainEqual({ kind: 'loaded', id: 3, answer: {} });
    expect(sent(3)).not.toContainEqual({ kind: 'loaded', id: 3, answer: {} });
  });

  test('ends without an answer when the owner does not exist', () => {
    const { relay, sent } = startWorkers(1);
    relay.receive(1, { kind: 'load', id: 3, owner: 9, key: 'A', handle: 'a' });
    expect(sent(1)).toEqual([{ kind: 'loaded', id: 3, answer: {} }]);
  });
});

describe('the lock of a key', () => {
  const granted = (id: number, freeMs: unknown = expect.any(Number)) => ({
    kind: 'lock-granted',
    id,
    freeMs,
  });

  test('is granted to one worker at a time', () => {
    const { relay, sent } = startWorkers(2);
    relay.receive(1, { kind: 'acquire-lock', id: 1, key: 'A', client: 'x' });
    relay.receive(2, { kind: 'acquire-lock', id: 1, key: 'A', client: 'x' });
    relay.receive(2, { kind: 'acquire-lock', id: 2, key: 'B', client: 'x' });
    expect([sent(1), sent(2)]).toEqual([[granted(1)], [granted(2)]]);
    relay.receive(1, { kind: 'release-lock', id: 1, key: 'A' });
    expect(sent(2)).toEqual([granted(1, 0)]);
  });

  test('is released when its worker exits', () => {
    const { relay, sent } = startWorkers(2);
    relay.receive(1, { kind: 'acquire-lock', id: 1, key: 'A', client: 'x' });
    relay.receive(2, { kind: 'acquire-lock', id: 5, key: 'A', client: 'x' });
    relay.leave(1);
    expect(sent(2)).toContainEqual(granted(5, 0));
  });

  test('skips workers that stopped waiting', () => {
    const { relay, sent } = startWorkers(3);
    relay.receive(1, { kind: 'acquire-lock', id: 1, key: 'A', client: 'x' });
    relay.receive(2, { kind: 'acquire-lock', id: 1, key: 'A', client: 'x' });
    relay.receive(3, { kind: 'acquire-lock', id: 1, key: 'A', client: 'x' });
    relay.receive(2, { kind: 'release-lock', id: 1, key: 'A' });
    relay.receive(1, { kind: 'release-lock', id: 1, key: 'A' });
    expect([sent(2), sent(3)]).toEqual([[], [granted(1, 0)]]);
  });

  test('is shared fairly among clients on all workers', () => {
    const { relay, sent } = startWorkers(2);
    for (const id of [1, 2, 3]) relay.receive(1, { kind: 'acquire-lock', id, key: 'A', client: 'many' });
    relay.receive(2, { kind: 'acquire-lock', id: 1, key: 'A', client: 'one' });
    relay.receive(1, { kind: 'release-lock', id: 1, key: 'A' });
    expect([sent(1), sent(2)]).toEqual([[granted(1)], [granted(1, 0)]]);
  });

  test('is refused when a client has too many waiting requests', () => {
    const { relay, sent } = startWorkers(2);
    for (let id = 1; id <= 128; id++)
      relay.receive(1, { kind: 'acquire-lock', id, key: 'A', client: 'many' });
    sent(1);
    relay.receive(2, { kind: 'acquire-lock', id: 7, key: 'A', client: 'many' });
    relay.receive(2, { kind: 'acquire-lock', id: 8, key: 'A', client: 'one' });
    expect(sent(2)).toEqual([{ kind: 'lock-refused', id: 7 }]);
  });
});
