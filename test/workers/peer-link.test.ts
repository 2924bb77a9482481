// One worker's side of the channel, where messages may hold what cannot be sent.
import { expect, test } from 'vitest';
import type { Member } from '../../src/admin/operations.js';
import { ServiceError } from '../../src/errors.js';
import type { Outcome } from '../../src/handle/outcome.js';
import { answerCall } from '../../src/workers/members.js';
import type { Down, Up } from '../../src/workers/messages.js';
import { type PeerHandlers, PeerLink } from '../../src/workers/peers.js';

/** Sends like `process.send`, which writes JSON and throws where that is not possible. */
function createChannel(): { sent: Up[]; send: (message: Up) => void } {
  const sent: Up[] = [];
  return { sent, send: (message) => sent.push(JSON.parse(JSON.stringify(message)) as Up) };
}

/** Too deep for JSON.stringify. */
function nested(): unknown {
  let value: unknown = [];
  for (let level = 0; level < 100_000; level++) value = [value];
  return value;
}

const refused = (members: Record<string, unknown>): Outcome => {
  return { kind: 'refused', status: 400, members, namesHandle: false };
};

test.each<[string, () => Promise<Outcome>]>([
  ['a refusal that is nested too deep', () => Promise.resolve(refused({ message: nested() }))],
  ['a refusal with what JSON does not know', () => Promise.resolve(refused({ message: 1n }))],
  [
    'a failure that is nested too deep',
    () =>
      Promise.reject(
        new ServiceError('UPSTREAM_FAILED', {
          upstreamAnswer: { status: 500, members: { message: nested() }, namesHandle: false },
        }),
      ),
  ],
])('%s is not answered: the other worker asks by itself', async (_what, load) => {
  const { sent, send } = createChannel();
  const link = new PeerLink({ self: 1, askTimeoutMs: 1000, send });
  link.obey({ kind: 'asked', id: 7, from: 2, key: 'A', handle: 'a' }, { load } as unknown as PeerHandlers);
  await expect.poll(() => sent).toEqual([{ kind: 'answer', id: 7, from: 2, answer: {} }]);
});

test("a report that cannot be sent is a failure of the operator's call", async () => {
  const { sent, send } = createChannel();
  const report = (): Promise<unknown> => Promise.resolve({ pid: 1n });
  const call: Extract<Down, { kind: 'call' }> = { kind: 'call', id: 3, name: 'report', argument: undefined };
  await answerCall({ report } as unknown as Member, call, send);
  expect(sent).toEqual([{ kind: 'reply', id: 3, failure: expect.stringContaining('BigInt') as string }]);
});
