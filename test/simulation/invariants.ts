// Invariants that are checked after every step.
import { Bans } from '../../src/cache/coherence/bans.js';
import { decodeEntry, originOf, RUN_LENGTH } from '../../src/cache/entry.js';
import { groupNames, stateName } from '../../src/cache/redis/namespace.js';
import { handleRef } from '../../src/handle/handle.js';
import { awaitedUntil, noteOutages } from './outages.js';
import type { Process } from './process.js';
import { versionOf } from './upstream.js';
import { Violation } from './violation.js';
import type { World } from './world.js';

const PREFIX = 'p:';
const NEXT_LEASE_MS = 2500;
/** Interval between checks of requests and Redis. Memory is checked after every step. */
const LOOK_EVERY_MS = 20;

export class Invariants {
  readonly #world: World;
  #lookedAt = -Infinity;

  constructor(world: World) {
    this.#world = world;
  }

  /** Checks all invariants that are due. @throws Violation */
  check(): void {
    const { violation, now, requests } = this.#world;
    if (violation !== undefined) throw violation;
    noteOutages(this.#world);
    this.#checkMemory();
    if (now - this.#lookedAt < LOOK_EVERY_MS) return;
    this.#lookedAt = now;
    requests.check();
    if (this.#isRedisRead) this.#checkRedis();
  }

  get #isRedisRead(): boolean {
    const { instances, redis } = this.#world;
    return instances.some(
      ({ server, process }) => this.#isBound(process) && server?.readsFrom(redis) === true,
    );
  }

  /**
   * Whether the guarantee applies to a process. A paused process serves nothing, and a process that did not
   * notice its pause is an exception until its next lease.
   */
  #isBound({ isPaused, unnoticedUntil }: Process): boolean {
    return !isPaused && this.#world.now - unnoticedUntil >= NEXT_LEASE_MS;
  }

  #checkMemory(): void {
    const { instances, handles, history, now } = this.#world;
    for (const instance of instances) {
      const { server, process, name } = instance;
      if (!this.#isBound(process) || server?.hasLease !== true) continue;
      for (const handle of handles) {
        const entry = server.fresh(handle);
        if (entry === undefined || versionOf(entry) >= history.oldest(name, handle)) continue;
        const oldest = history.oldest(name, handle, now, awaitedUntil(this.#world, process, entry));
        if (versionOf(entry) >= oldest) continue;
        const detail = `${name} has version ${versionOf(entry)} of ${handle}, ${oldest} was acknowledged`;
        throw new Violation('no older record is kept as fresh in memory', detail);
      }
    }
  }

  #checkRedis(): void {
    const { redis, handles, history } = this.#world;
    if (!redis.host.isAlive) return;
    for (const handle of handles) {
      const version = this.#versionInRedis(handleRef(handle, false).key);
      if (version === undefined || version >= history.oldestInRedis(handle)) continue;
      const detail = `version ${version} of ${handle}, ${history.oldestInRedis(handle)} was acknowledged`;
      throw new Violation('no older record is kept as fresh in Redis', detail);
    }
  }

  /** Returns the version of a Redis entry that a reader would use. */
  #versionInRedis(key: string): number | undefined {
    const { keyspace, runId } = this.#world.redis;
    const [entryName, groupState] = groupNames(PREFIX, key);
    const bytes = keyspace.read(entryName, 'string');
    const run = runId.slice(0, RUN_LENGTH);
    if (bytes === undefined || keyspace.read(groupState, 'hash')?.get('run') !== run) return undefined;
    const buffer = Buffer.from(bytes, 'latin1');
    const origin = originOf(buffer);
    const entry = decodeEntry(key, buffer);
    if (entry === undefined || origin.run !== run) return undefined;
    const left = this.#bans(run)?.apply(key, entry, origin.ban);
    return left === undefined || left.staleAt <= keyspace.now ? undefined : versionOf(left);
  }

  /** Returns the ban list, or undefined if the next reader would treat every entry as banned. */
  #bans(run: string): Bans | undefined {
    const bans = new Bans();
    const state = this.#world.redis.keyspace.read(stateName(PREFIX, 'bans'), 'hash');
    if (state?.get('run') !== run) return undefined;
    for (const [field, value] of state) {
      if (field === 'floor') bans.raiseFloor(Number(value));
      if (field.startsWith('b:'))
        bans.add({
          number: Number(field.slice(2)),
          isSoft: value.startsWith('soft '),
          prefix: value.slice(5),
        });
    }
    return bans;
  }
}
