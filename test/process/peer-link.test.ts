// A worker's link to the primary, also with values that cannot be serialised.
import { expect, test } from 'vitest';
import type { ProcessControl } from '../../src/admin/operations.js';
import { LEASE_MS } from '../../src/cache/coherence/lease.js';
import { ServiceError } from '../../src/errors.js';
import type { Outcome } from '../../src/handle/outcome.js';
import { answerCall } from '../../src/process/cluster/process-control.js';
import {
  type ControlMessage,
  type PeerFailure,
  type WorkerMessage,
  packFailure,
  unpackFailure,
} from '../../src/process/cluster/messages.js';
import { type PeerHandlers, PeerLink } from '../../src/process/cluster/peer-link.js';
import { createManualClock, isSettled } from '../support/manual-clock.js';

/** Sends like `process.send`, which writes JSON and throws where that is not possible. */
function createChannel(): { sent: WorkerMessage[]; send: (message: WorkerMessage) => void } {
  const sent: WorkerMessage[] = [];
  return { sent, send: (message) => sent.push(JSON.parse(JSON.stringify(message)) as WorkerMessage) };
}

const LOST_MAX_AGE_MS = 5000;

function openLink(send: (message: WorkerMessage) => void, clock = createManualClock()): PeerLink {
  return new PeerLink({ self: 1, loadTimeoutMs: 1000, send, clock, lostMaxAgeMs: LOST_MAX_AGE_MS });
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
  ['a refusal nested too deep', () => Promise.resolve(refused({ message: nested() }))],
  ['a refusal with a value that JSON lacks', () => Promise.resolve(refused({ message: 1n }))],
  [
    'a failure nested too deep',
    () =>
      Promise.reject(
        new ServiceError('UPSTREAM_FAILED', {
          upstreamAnswer: { status: 500, members: { message: nested() }, namesHandle: false },
        }),
      ),
  ],
])('%s is left out: the other worker loads by itself', async (_what, load) => {
  const { sent, send } = createChannel();
  const link = openLink(send);
  link.receive({ kind: 'load', id: 7, from: 2, key: 'A', handle: 'a' }, { load } as unknown as PeerHandlers);
  await expect.poll(() => sent).toEqual([{ kind: 'loaded', id: 7, from: 2, answer: {} }]);
});

test("a report that cannot be serialised fails the operator's call", async () => {
  const { sent, send } = createChannel();
  const report = (): Promise<unknown> => Promise.resolve({ pid: 1n });
  const call: Extract<ControlMessage, { kind: 'call' }> = {
    kind: 'call',
    id: 3,
    name: 'report',
    argument: undefined,
  };
  await answerCall({ report } as unknown as ProcessControl, call, send);
  expect(sent).toEqual([{ kind: 'call-reply', id: 3, failure: expect.stringContaining('BigInt') as string }]);
});

const noHandlers = {} as unknown as PeerHandlers;

/** A worker that renews its lease, with `instanceLeaseMs` left of the instance's lease. */
function startLeased(instanceLeaseMs: number) {
  const clock = createManualClock();
  const { sent, send } = createChannel();
  const link = openLink(send, clock);
  let states = 0;
  link.onState(() => states++);
  const renew = (): void => {
    link.renew();
    const asking = sent.findLast(({ kind }) => kind === 'renew-lease') as Extract<
      WorkerMessage,
      { kind: 'renew-lease' }
    >;
    link.receive({ kind: 'lease', requestedAt: asking.requestedAt, instanceLeaseMs }, noHandlers);
  };
  return { clock, link, renew, states: () => states };
}

test('a worker without a lease treats no entry as fresh', async () => {
  const { clock, link, renew } = startLeased(LEASE_MS);
  expect(link.trustedSince()).toBe(Infinity);
  renew();
  expect([link.trustedSince(), link.isLinked()]).toEqual([0, true]);
  await clock.pass(LEASE_MS);
  expect([link.trustedSince(), link.isLinked()]).toEqual([Infinity, false]);
});

test('a worker treats recent entries as fresh while its instance has no lease', () => {
  const { clock, link, renew, states } = startLeased(0);
  renew();
  expect([link.trustedSince(), link.isLinked()]).toEqual([clock.now() - LOST_MAX_AGE_MS, false]);
  expect(states()).toBe(1);
});

test('the lease of the instance ends for a worker and the primary at the same time', async () => {
  const { clock, link, renew } = startLeased(300);
  renew();
  await clock.pass(299);
  expect(link.isLinked()).toBe(true);
  await clock.pass(1);
  expect(link.isLinked()).toBe(false);
  expect(link.trustedSince()).toBe(clock.now() - LOST_MAX_AGE_MS);
});

test('publishing settles with the reply of the primary, a failure included', async () => {
  const { sent, send } = createChannel();
  const link = openLink(send);
  const change = { kind: 'forget', key: 'A' } as const;
  const [published, refused] = [link.publish(change), link.publish(change)];
  expect(sent).toEqual([
    { kind: 'publish', id: 1, change },
    { kind: 'publish', id: 2, change },
  ]);
  expect(await isSettled(published)).toBe(false);
  link.receive({ kind: 'delivered', id: 1 }, noHandlers);
  await published;
  link.receive({ kind: 'delivered', id: 2, failure: { code: 'NOT_CONFIRMED', message: 'x' } }, noHandlers);
  await expect(refused).rejects.toMatchObject({ code: 'NOT_CONFIRMED', status: 503 });
});

test('a message is applied before it is acknowledged', () => {
  const { sent, send } = createChannel();
  const order: string[] = [];
  const link = openLink((message) => {
    order.push(message.kind);
    send(message);
  });
  const apply = (): number => order.push('apply');
  link.receive({ kind: 'apply', id: 4, message: { kind: 'forget', key: 'A' } }, {
    apply,
  } as unknown as PeerHandlers);
  expect(order).toEqual(['apply', 'applied']);
  expect(sent).toEqual([{ kind: 'applied', id: 4 }]);
});

test.each([undefined, 'more of it'])('an error of another worker has the same detail: %s', (detail) => {
  const failure = new ServiceError('UPSTREAM_TIMEOUT', { ...(detail !== undefined && { detail }) });
  const { message, detail: received } = unpackFailure(packFailure(failure));
  expect([message, received]).toEqual([failure.message, detail]);
});

test('the cause of a failure reaches the worker that waits for the load, for its log', () => {
  const diagnosis = { cause: 'ECONNREFUSED', remedy: 'check upstream.url' };
  const failure = new ServiceError('UPSTREAM_REFUSED', { diagnosis, retryAfterMs: 7000 });
  const received = unpackFailure(JSON.parse(JSON.stringify(packFailure(failure))) as PeerFailure);
  const { code, message, retryAfterSeconds } = failure;
  expect(received).toMatchObject({ code, message, diagnosis, retryAfterSeconds });
});

test('of the packets for another worker at most a thousand a second are passed on, by whatever senders', async () => {
  const { sent, send } = createChannel();
  const clock = createManualClock();
  const link = openLink(send, clock);
  link.receive({ kind: 'workers', ids: [1, 2] }, { clearCache: () => undefined } as unknown as PeerHandlers);
  const packets = (): number => sent.filter(({ kind }) => kind === 'packet').length;
  const pass = (): boolean[] =>
    Array.from({ length: 5000 }, (_, at) =>
      link.passPacket(`key ${at}`, { bytes: '', address: `192.0.2.${at % 256}`, port: at }),
    );
  const others = pass().filter(Boolean).length;
  expect(others).toBeGreaterThan(2000);
  expect(others).toBeLessThan(3000);
  expect(packets()).toBe(1000);
  await clock.pass(1000);
  pass();
  expect(packets()).toBe(2000);
});
