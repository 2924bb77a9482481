// The lock of a handle for a write: who may wait for it, and a read of the record that is still current under it.
import type { IncomingMessage } from 'node:http';
import type { KeyLock, LockGrant } from '../coordination/key-lock.js';
import { LockPlaces, type Writer } from '../coordination/lock-places.js';
import { ServiceError } from '../errors.js';
import type { HandleRef } from '../handle/handle.js';
import { identityOf } from '../http/identity.js';

/** A held lock. */
export interface Held extends Pick<LockGrant, 'assertHeld'> {
  /** Call it when the Handle server has refused the login and the work does not throw that. */
  onRefused: () => void;
}

export const NOT_HELD: Held = { assertHeld: () => undefined, onRefused: () => undefined };

interface LockedWork<Current, Result> {
  req: IncomingMessage;
  /** Reads the record with the caller's login; throws when the login is refused. */
  read: () => Promise<Current>;
  work: (current: Current, held: Held) => Promise<Result>;
  /** Does the work without the lock if the Handle server itself makes it atomic; otherwise undefined. */
  unlocked?: (current: Current) => Promise<Result | undefined> | undefined;
}

/** Works under the lock of the handle over all instances. */
export type HandleLock = <Current, Result>(
  handle: HandleRef,
  work: LockedWork<Current, Result>,
) => Promise<Result>;

interface HandleLockParts {
  coordination: { lock: KeyLock };
  findClient: (req: IncomingMessage) => Pick<Writer, 'network'>;
}

/**
 * Reads before it acquires the lock: a caller whose login the Handle server refuses gets no place in the
 * queue. Over plain http the server refuses only the write, and `LockPlaces` bounds that cost. The record is read again
 * if another client has held the lock since.
 */
export function createHandleLock({ coordination: { lock }, findClient }: HandleLockParts): HandleLock {
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
      return await lock(handle.key, locked, writer.client);
    } catch (error) {
      if (isLoginRefused(error)) onRefused();
      throw error;
    } finally {
      giveBack();
    }
  };
}

/** A writer is identified by its login, or without one by its network. */
const writerOf = (
  { headers }: IncomingMessage,
  { network }: Pick<Writer, 'network'>,
  { prefix }: HandleRef,
): Writer => ({ client: identityOf(headers.authorization) ?? network, network, prefix });

const isLoginRefused = (error: unknown): boolean =>
  error instanceof ServiceError && [401, 403].includes(error.upstreamAnswer?.status ?? error.status);

const noPlace = (): ServiceError =>
  new ServiceError('BUSY', {
    detail: 'others are changing this handle, try again in a moment',
    retryAfterMs: 1000,
  });
