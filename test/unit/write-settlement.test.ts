import { describe, expect, test, vi } from 'vitest';
import type { Fence } from '../../src/cache/store.js';
import { ServiceError } from '../../src/errors.js';
import type { WriteAnswer } from '../../src/write/decisions.js';
import { gate } from '../support/gate.js';
import { createSend } from '../support/send-write.js';

/** Creates a fence that records its settlement, which rejects with `failing` if given. */
function createFence(failing?: Error) {
  const settled: string[] = [];
  const settle = (outcome: string) => (): Promise<void> => {
    settled.push(outcome);
    return failing ? Promise.reject(failing) : Promise.resolve();
  };
  return {
    settled,
    fence: {
      changed: settle('changed'),
      unchanged: settle('unchanged'),
      unknown: settle('unknown'),
      extend: () => undefined,
    },
  };
}

/** Returns the send function of a write under this fence. */
const sendUnder = (fence: Fence, onChanged?: () => Promise<void>) =>
  createSend(() => Promise.resolve(fence), undefined, onChanged && [onChanged]);

const responded = (status: number) => (): Promise<WriteAnswer> => Promise.resolve({ status });

describe('fence settlement', () => {
  test.each([
    [200, 'changed'],
    [409, 'unchanged'],
    [502, 'unknown'],
  ])('occurs once after a %i response, as %s', async (status, outcome) => {
    const { fence, settled } = createFence();
    await sendUnder(fence)([responded(status)]);
    expect(settled).toEqual([outcome]);
  });

  test.each<[outcome: string, statuses: number[], sent: number]>([
    ['unchanged', [], 0],
    ['unchanged', [409, 200], 1],
    ['changed', [200, 200], 2],
    ['changed', [200, 409, 200], 2],
    ['changed', [200, 404], 2],
    ['unknown', [200, 502, 200], 2],
  ])('occurs once, as %s, for a write in steps with the responses %j', async (outcome, statuses, sent) => {
    const { fence, settled } = createFence();
    let requests = 0;
    const steps = statuses.map((status) => (): Promise<WriteAnswer> => {
      requests++;
      return Promise.resolve({ status });
    });
    await sendUnder(fence)(steps);
    expect([settled, requests]).toEqual([[outcome], sent]);
  });

  test('counts the life of the fence from each further request', async () => {
    const done: string[] = [];
    const { fence } = createFence();
    const extend = () => void done.push('extend');
    const send = () => {
      done.push('send');
      return responded(200)();
    };
    await sendUnder({ ...fence, extend })([send, send]);
    expect(done).toEqual(['send', 'extend', 'send']);
  });

  test.each<[outcome: string | undefined, statuses: number[]]>([
    [undefined, []],
    ['unchanged', [429]],
    ['changed', [200, 429]],
    ['unknown', [200, 503]],
  ])(
    'resolves to the outcome of all requests, %s, with the last response of %j',
    async (outcome, statuses) => {
      const last = await sendUnder(createFence().fence)(statuses.map(responded));
      expect([last?.outcome, last?.status]).toEqual([outcome, statuses.at(-1)]);
    },
  );

  test('failure after a request that may have been executed relays no Retry-After', async () => {
    const upstreamAnswer = { status: 503, members: {}, namesHandle: false, retryAfter: '17' };
    const failure = new ServiceError('UPSTREAM_BUSY', { upstreamAnswer });
    await expect(sendUnder(createFence().fence)([() => Promise.reject(failure)])).rejects.toMatchObject({
      retryAfterSeconds: undefined,
      upstreamAnswer: { status: 503, members: {}, namesHandle: false },
    });
  });

  test.each<[recorded: number, statuses: number[], isStored: boolean]>([
    [1, [200], false],
    [1, [200, 409], false],
    [1, [200, 404], false],
    [1, [502], false],
    [1, [502], true],
    [0, [404], false],
    [0, [409], false],
  ])(
    'records %i changes after the responses %j (found to be stored: %s)',
    async (recorded, statuses, isStored) => {
      const onChanged = vi.fn(() => Promise.resolve());
      const send = sendUnder(createFence().fence, onChanged);
      await send(statuses.map(responded), { isStored: () => Promise.resolve(isStored) });
      expect(onChanged).toHaveBeenCalledTimes(recorded);
    },
  );

  test('occurs once as unknown when there is no response, and suggests no retry', async () => {
    const { fence, settled } = createFence();
    const failure = new ServiceError('UPSTREAM_TIMEOUT');
    await expect(sendUnder(fence)([() => Promise.reject(failure)])).rejects.toMatchObject({
      code: 'UPSTREAM_TIMEOUT',
      retryAfterSeconds: undefined,
    });
    expect(settled).toEqual(['unknown']);
  });

  test('occurs once, as unchanged, for an unsent write', async () => {
    const { fence, settled } = createFence();
    const failure = new ServiceError('UPSTREAM_CONNECT_FAILED');
    await expect(sendUnder(fence)([() => Promise.reject(failure)])).rejects.toBe(failure);
    expect(settled).toEqual(['unchanged']);
  });

  test('is not repeated as unknown when the change is unconfirmed', async () => {
    const failure = new ServiceError('INVALIDATION_UNCONFIRMED');
    const { fence, settled } = createFence(failure);
    await expect(sendUnder(fence)([responded(200)])).rejects.toMatchObject({
      code: 'INVALIDATION_UNCONFIRMED',
      retryAfterSeconds: undefined,
    });
    expect(settled).toEqual(['changed']);
  });

  test.each([undefined, new ServiceError('INVALIDATION_UNCONFIRMED')])(
    'precedes the recording of the change, which precedes the reply (settlement failure: %s)',
    async (failure) => {
      const { fence, settled } = createFence(failure);
      const recording = gate();
      const onChanged = async (): Promise<void> => {
        settled.push('recording');
        await recording.opened;
        settled.push('recorded');
      };
      const sent = sendUnder(fence, onChanged)([responded(200)]).catch(() => undefined);
      const replied = sent.then(() => settled.push('replied'));
      await expect.poll(() => settled).toEqual(['changed', 'recording']);
      recording.open();
      await replied;
      expect(settled).toEqual(['changed', 'recording', 'recorded', 'replied']);
    },
  );
});
