// Workers of one machine: what one of them changes holds in all of them, also in those that start later.
import { expect, test } from 'vitest';
import { LEASE_MS, LEASE_WAIT_MS } from '../../src/cache/coherence/lease.js';
import { FENCE_LIFE_MS, type Machine, type MachineWorker, createMachine } from '../support/machine.js';
import { isSettled } from '../support/manual-clock.js';
import { entryOf } from '../support/store-contract.js';

const KEY = '21.T1/KEY';

async function put(worker: MachineWorker, text = 'old'): Promise<boolean> {
  return worker.store.set(KEY, entryOf(text), (await worker.store.get(KEY)).ticket);
}

/** Workers with a lease. */
function startWorkers(count: number): { machine: Machine; workers: MachineWorker[] } {
  const machine = createMachine();
  const workers = Array.from({ length: count }, () => machine.start());
  for (const worker of workers) worker.join();
  machine.renew();
  return { machine, workers };
}

test('a write through one worker is acknowledged when no worker has the old record', async () => {
  const { workers } = startWorkers(3);
  for (const worker of workers) await put(worker);
  const fence = await workers[0]!.store.fence(KEY);
  expect(workers.map(({ memory }) => memory.peek(KEY)?.staleAt)).toEqual(
    workers.map(() => entryOf('old').staleAt),
  );
  await fence.changed();
  expect(workers.map(({ memory }) => memory.peek(KEY))).toEqual([undefined, undefined, undefined]);
});

test('an authoritative load stays in its worker, and the others delete their copies', async () => {
  const [one, other] = startWorkers(2).workers as [MachineWorker, MachineWorker];
  await put(one);
  await put(other);
  const { ticket } = await one.store.get(KEY);
  expect(await one.store.replace(KEY, entryOf('new'), ticket)).toBe(true);
  expect([one, other].map(({ memory }) => memory.peek(KEY))).toEqual([entryOf('new'), undefined]);
});

test('a worker that starts during a write of unknown end does not keep what it loaded meanwhile', async () => {
  const machine = createMachine();
  const writer = machine.start();
  writer.join();
  const fence = await writer.store.fence(KEY);
  const late = machine.start();
  late.join();
  await put(late);
  await machine.clock.pass(FENCE_LIFE_MS / 2);
  await fence.unknown();
  expect(late.memory.peek(KEY)?.staleAt).toBe(0);
  expect(await put(late)).toBe(false);
  await machine.clock.pass(FENCE_LIFE_MS);
  expect(late.memory.peek(KEY)?.staleAt).toBe(0);
});

test('a worker that the primary sends no messages yet takes nothing it keeps for fresh', async () => {
  const machine = createMachine();
  const worker = machine.start();
  const { ticket } = await worker.store.get(KEY);
  machine.renew();
  expect(worker.trustedSince()).toBe(Infinity);
  worker.join();
  machine.renew();
  expect(worker.trustedSince()).toBe(0);
  expect(await worker.store.set(KEY, entryOf('old'), ticket)).toBe(false);
});

test('a worker that stands still is waited for until it takes nothing it keeps for fresh', async () => {
  const { machine, workers } = startWorkers(2);
  const [writer, frozen] = workers as [MachineWorker, MachineWorker];
  await put(frozen);
  const fence = await writer.store.fence(KEY);
  frozen.freeze();
  const changed = fence.changed();
  await machine.clock.pass(LEASE_MS);
  expect(await isSettled(changed)).toBe(false);
  expect(frozen.trustedSince()).toBe(Infinity);
  await machine.clock.pass(LEASE_WAIT_MS - LEASE_MS);
  machine.relay.releaseExpired();
  await changed;
});

test('a worker that resumes applies missed messages before its entries are fresh again', async () => {
  const { machine, workers } = startWorkers(2);
  const [writer, frozen] = workers as [MachineWorker, MachineWorker];
  await put(frozen);
  frozen.freeze();
  await machine.clock.pass(LEASE_WAIT_MS);
  await (await writer.store.fence(KEY)).changed();
  frozen.link.renew();
  expect(frozen.trustedSince()).toBe(Infinity);
  frozen.goOn();
  expect(frozen.trustedSince()).toBe(0);
  expect(frozen.memory.peek(KEY)).toBeUndefined();
});
