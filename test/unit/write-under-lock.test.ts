// Writes under a lock: they are not sent when the lock may expire, and a rejected login is reported.
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import type { Host } from '../../src/host.js';
import { ServiceError } from '../../src/errors.js';
import { handleRef } from '../../src/handle/handle.js';
import type { Hooks } from '../../src/hooks.js';
import type { RequestContext } from '../../src/http/context.js';
import { HANDLE_SERVER } from '../../src/upstream/handle-server.js';
import type { OriginServer } from '../../src/upstream/contract.js';
import type { WriteAnswer } from '../../src/write/decisions.js';
import type { HandleLock, Held } from '../../src/write/lock.js';
import type { OriginRecord } from '../../src/write/origin-record.js';
import { createCarryOut, noBody } from '../../src/write/write.js';
import { partial } from '../support/partial.js';

/** A lock in this process. */
const HELD: Held = { freeSince: -Infinity, onRefused: () => undefined };

const origin = {
  handle: handleRef('21.T1/x', false),
  server: { readOnly: false, source: HANDLE_SERVER } as OriginServer,
  caller: undefined,
} as OriginRecord;

/** Runs a conditional write to which the Handle server responds with this status. */
async function write(held: Held, status: number) {
  const settled: string[] = [];
  const sent: string[] = [];
  const recorded: string[] = [];
  const settle = (outcome: string) => (): Promise<void> => Promise.resolve(void settled.push(outcome));
  const lock: HandleLock = (_handle, _client, work) => work(held);
  const host = partial<Host>({
    resolver: { recheck: () => Promise.resolve() },
    cache: {
      store: {
        fence: () =>
          Promise.resolve({
            changed: settle('changed'),
            unchanged: settle('unchanged'),
            unknown: settle('unknown'),
            extend: () => undefined,
          }),
      },
    },
    hooks: partial<Hooks>({
      changed: [(changes) => Promise.resolve(void recorded.push(...changes.map(({ outcome }) => outcome)))],
    }),
  });
  const carryOut = createCarryOut({ handles: false, values: false, allowedFor: [] }, lock, host);
  const send = (assertHeld?: () => void): Promise<WriteAnswer> => {
    assertHeld?.();
    sent.push('the request');
    return Promise.resolve({ status });
  };
  const req = new IncomingMessage(new Socket());
  const carriedOut = carryOut({
    req,
    context: partial<RequestContext>({ family: 'record', client: { address: '', network: '' } }),
    origin,
    withBody: noBody,
    read: () => Promise.resolve('the record'),
    attempt: (_body, _current, sendWrite) =>
      sendWrite([(assertHeld) => Promise.resolve().then(() => send(assertHeld))]),
  });
  const failure = await carriedOut.then(
    () => undefined,
    (error: unknown) => error as ServiceError,
  );
  return { settled, sent, recorded, code: failure?.code };
}

describe('write under a lock', () => {
  test('is not sent when the lock could expire before the Handle server responds', async () => {
    const assertHeld = (): void => {
      throw new ServiceError('LOCK_UNAVAILABLE');
    };
    expect(await write({ ...HELD, assertHeld }, 200)).toEqual({
      settled: ['unchanged'],
      sent: [],
      recorded: [],
      code: 'LOCK_UNAVAILABLE',
    });
  });

  test.each([
    [200, 0],
    [401, 1],
    [403, 1],
    [404, 0],
  ])('after a %i response, reports a rejected login %i time(s)', async (status, times) => {
    let refused = 0;
    const onRefused = (): void => {
      refused++;
    };
    await write({ ...HELD, onRefused }, status);
    expect(refused).toBe(times);
  });
});
