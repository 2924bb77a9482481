// Conditional writes: each reads a record, takes the lock of its handle, and must not undo what another has written since.
import { createSend } from '../support/send-write.js';
import type { Fence } from '../../src/cache/store.js';
import { ServiceError } from '../../src/errors.js';
import { handleRef } from '../../src/handle/handle.js';
import { type AcquireRedisLock, createRedisLock } from '../../src/write/redis-lock.js';
import type { WriteAnswer } from '../../src/write/decisions.js';
import type { Target } from './requests.js';
import type { Server } from './server.js';
import { WRITE_TIMEOUT_MS } from './upstream.js';
import { Violation } from './violation.js';
import type { World } from './world.js';

const LOCK_WAIT_MS = 5000;

/** A write under a lock, with times in virtual ms. */
interface Locked {
  grantedAt: number;
  sentAt: number;
  /** The new version, once the Handle server has executed the write in time. */
  version?: number;
}

export class ConditionalWrites {
  /** Virtual time at which Redis last lost a lock, and at which it lost one without a restart or a failover. */
  lostAt = -Infinity;
  flushedAt = -Infinity;
  readonly #world: World;
  readonly #locks = new WeakMap<Server, AcquireRedisLock>();
  readonly #writes = new Map<string, Locked[]>();

  constructor(world: World) {
    this.#world = world;
  }

  /** Writes a record under its lock. Resolves like `Server.write`. @throws ServiceError, Violation */
  async write({ server, handle }: Target): Promise<number | undefined> {
    const { process, cache } = server;
    const { upstream } = this.#world;
    const readAt = process.clock.monotonic();
    const since = this.#world.now;
    let known = await upstream.readVersion(process, handle);
    const lock = await this.#lockOf(server)(handle, process.clock.monotonic() + LOCK_WAIT_MS);
    if (lock === undefined) throw new ServiceError('CONCURRENT_MODIFICATION', {});
    const grantedAt = this.#world.now;
    let version: number | undefined;
    const forward = async (): Promise<WriteAnswer> => {
      lock.assertHeld();
      // Its clocks do not show how long ago it has read the record.
      const knows = process.unnoticedUntil > since ? Infinity : known;
      const locked = this.#sends(handle, knows, grantedAt);
      version = await upstream.write(process, handle, (written) => {
        if (this.#world.now - locked.sentAt < 0.9 * WRITE_TIMEOUT_MS) locked.version = written;
      });
      return { status: version === undefined ? 403 : 200 };
    };
    try {
      if (lock.freeSince > readAt) known = await upstream.readVersion(process, handle);
      const raise = (key: string): Promise<Fence> => cache.store.fence(key);
      await createSend(raise, handleRef(handle, false), server.changed)([forward]);
      return version;
    } finally {
      void lock.release();
    }
  }

  /**
   * Records a write that is sent. The exceptions are those of src/write/README.md. @throws Violation if the record, which was
   * read at version `known`, has changed
   */
  #sends(handle: string, known: number, grantedAt: number): Locked {
    const { now } = this.#world;
    const others = this.#writes.get(handle) ?? [];
    const undone = others.find((other) => {
      if (other.version === undefined || other.version <= known) return false;
      return other.sentAt < grantedAt ? this.lostAt < other.grantedAt : this.flushedAt < grantedAt;
    });
    if (undone !== undefined) {
      const detail = `version ${undone.version} of ${handle}, by a write that depends on version ${known}`;
      throw new Violation('no conditional write undoes another', detail);
    }
    const locked: Locked = { grantedAt, sentAt: now };
    this.#writes.set(handle, [...others.slice(-20), locked]);
    return locked;
  }

  #lockOf(server: Server): AcquireRedisLock {
    const { commands, era } = server.cache;
    const { clock } = server.process;
    const known = this.#locks.get(server);
    if (known !== undefined || commands === undefined) return known ?? (() => Promise.resolve(undefined));
    const lock = createRedisLock({
      ...{ redis: commands, era, clock },
      ...{ waitMs: LOCK_WAIT_MS, writeMs: WRITE_TIMEOUT_MS },
    });
    this.#locks.set(server, lock);
    return lock;
  }
}
