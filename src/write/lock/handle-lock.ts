// The lock of a handle for a write: admission to its queue, and a current read of the record under the lock.
import type { IncomingMessage } from 'node:http';
import type { KeyLock, LockGrant } from './key-lock.js';
import { LockPlaces, type Writer } from './lock-places.js';
import { ServiceError } from '../../errors.js';
import type { HandleRef } from '../../handle/handle.js';
import { identityOf } from '../../http/identity.js';

export interface Held extends Pick<LockGrant, 'assertHeld'> {
  /** Records a refused login. Call it if the work does not throw the refusal. */
  onRefused: () => void;
}

export const NOT_HELD: Held = { assertHeld: () => undefined, onRefused: () => undefined };

interface LockedWork<Current, Result> {
  req: IncomingMessage;
  /** Reads the record with the caller's login; throws if the login is refused. */
  read: () => Promise<Current>;
  work: (current: Current, held: Held) => Promise<Result>;
  /**
   * Does the work without the lock if the Handle server makes the work atomic; otherwise returns undefined.
   */
  unlocked?: (current: Current) => Promise<Result | undefined> | undefined;
}

/** Runs work under the lock of the handle, which all instances share. */
export type HandleLock = <Current, Result>(
  handle: HandleRef,
  work: LockedWork<Current, Result>,
) => Promise<Result>;

interface HandleLockParts {
  keyLock: KeyLock;
  findClient: (req: IncomingMessage) => Pick<Writer, 'network'>;
}

/**
 * Creates a handle lock that reads the record before it acquires the lock: a caller whose login is refused
 * gets no place in the queue. Over plain HTTP the server refuses only the write, and `LockPlaces` bounds the
 * cost of such writes. The record is read again if a different client has held the lock since.
 */
export function createHandleLock({ keyLock, findClient }: HandleLockParts): HandleLock {
  const places = new LockPlaces(() => performance.now());
  return async function lockAfterRead(handle, { req, read, work, unlocked }) {
    const readAt = performance.now();
    const current = await read();
    const unlockedWork = unlocked?.(current);
    const done = await unlockedWork;
    if (done !== undefined) return done;
    const writer = writerOf(req, findClient(req), handle);
    const giveBack = places.take(writer);
    if (giveBack === undefined) throw noPlace();
    const onRefused = (): void => {
      places.refuse(writer);
    };
    const locked = async ({ freeSince, assertHeld }: LockGrant) => {
      const holds = unlockedWork === undefined && freeSince <= readAt;
      return work(holds ? current : await read(), { assertHeld, onRefused });
    };
    try {
      return await keyLock(handle.key, locked, writer.client);
    } catch (error) {
      if (isLoginRefused(error)) onRefused();
      throw error;
    } finally {
      giveBack();
    }
  };
}

/** Identifies a writer by its login or, without a login, by its network. */
const writerOf = (
  { headers }: IncomingMessage,
  { network }: Pick<Writer, 'network'>,
  { prefix }: HandleRef,
): Writer => ({ client: identityOf(headers.authorization) ?? network, network, prefix });

const isLoginRefused = (error: unknown): boolean =>
  error instanceof ServiceError && [401, 403].includes(error.upstreamAnswer?.status ?? error.status);

const noPlace = (): ServiceError =>
  new ServiceError('CONCURRENT_MODIFICATION', {
    detail: 'other clients are changing this handle; try again in a moment',
    retryAfterMs: 1000,
  });
