// Publishes changes to the processes of this machine and, through Redis, to the other instances.
import { ServiceError } from '../../errors.js';
import {
  INSTANCE_LEASE_RENEWAL_MS,
  LEASE_MS,
  LEASE_WAIT_MS,
  MAX_DRIFT,
  MAX_REDIS_CLOCK_STEP_MS,
  MEMBERSHIP_MS,
} from './lease.js';
import { type Change, type Message, isInvalidation } from './message.js';
import type { PendingInvalidations } from './pending-invalidations.js';

/** What the cache of a process needs of coherence, whether its hub is in this process or in the primary. */
export interface Coherence {
  /**
   * Publishes a change to every process that caches. Settles when no instance answers with invalidated entries any more.
   * The name of a fence is unique in its process.
   *
   * @throws ServiceError NOT_CONFIRMED when that cannot be known (`redis.writesWithout: refuse`)
   */
  publish: (change: Change) => Promise<void>;
  /** Entries from before this moment (ms since the epoch) do not count as fresh. */
  trustedSince: () => number;
  /** Whether this process receives the changes of other instances. */
  isLinked: () => boolean;
}

export interface Published {
  /** The message number; it identifies a ban. */
  seq: number;
  /** True: no other member answers with invalidated entries any more. False: that cannot be confirmed. */
  acknowledged: Promise<boolean>;
}

/** An instance as one of the members that share a Redis. */
export interface Membership {
  readonly id: string;
  /** Remaining time of the lease (ms); 0 when messages may have been missed. */
  leaseLeftMs: () => number;
  /** Whether it has started, or was expelled, and is about to join: other members do not wait for it yet. */
  isJoining: () => boolean;
  /** Undefined: Redis has not confirmed the publication. */
  publish: (change: Change) => Promise<Published | undefined>;
  /** True: Redis is back, and the pending invalidations are published. False: `afterRenewalMs` have passed since the last renewal. */
  waitForReturn: (afterRenewalMs: number) => Promise<boolean>;
}

/** Whether a write that cannot be published waits until it is safe (`wait`) or answers 503 (`refuse`). */
export type WritesWithout = 'wait' | 'refuse';

/** Applies a message in every process of this machine. `from`: the worker that published it; none for other instances. */
export type Deliver = (message: Message, from?: number) => Promise<void>;

interface HubDeps {
  /** The clock of entries (ms since the epoch). */
  now: () => number;
  deliver: Deliver;
  /** Where Redis is used. */
  remote?: Remote | undefined;
}

interface Remote {
  member: Membership;
  pending: PendingInvalidations;
  writesWithout: WritesWithout;
  /** Maximum age of a fresh entry while there is no lease (ms). */
  lostMaxAgeMs: number;
}

/**
 * After this time since its last renewal was sent, the membership of an instance has ended: Redis runs a renewal within
 * the length of a lease, or not at all. Every other instance has learnt of that with its own renewal, or has lost its lease,
 * and has made the entries under the fences of this one stale.
 */
const UNKNOWN_TO_OTHERS_MS =
  MAX_DRIFT * (LEASE_MS + MEMBERSHIP_MS + MAX_REDIS_CLOCK_STEP_MS) +
  LEASE_WAIT_MS +
  INSTANCE_LEASE_RENEWAL_MS;

export class Hub implements Coherence {
  readonly #deps: HubDeps;

  constructor(deps: HubDeps) {
    this.#deps = deps;
  }

  isLinked(): boolean {
    const { remote } = this.#deps;
    return remote === undefined || remote.member.leaseLeftMs() > 0;
  }

  trustedSince(): number {
    const { now, remote } = this.#deps;
    if (remote === undefined || this.isLinked()) return 0;
    return remote.member.isJoining() ? Infinity : now() - remote.lostMaxAgeMs;
  }

  /** `from`: the worker that publishes. Redis comes first, so that no older Redis entry is copied into memory afterwards. */
  async publish(change: Change, from = 0): Promise<void> {
    const { remote } = this.#deps;
    const deliver = (message: Message): Promise<void> => this.#deps.deliver(message, from);
    const named = withMember(change, `${remote?.member.id ?? 'local'}/${from}`);
    if (remote === undefined) {
      await deliver(named);
      return;
    }
    // Memory needs the fence only in case the writer dies, so the write does not wait for it.
    if (named.kind === 'raise') void deliver(named);
    const published = await remote.member.publish(named);
    if (published === undefined) await this.#publishWithoutRedis(named, { remote, deliver });
    else if (named.kind !== 'raise') {
      const numbered = named.kind === 'ban' ? { ...named, number: published.seq } : named;
      const [isConfirmed] = await Promise.all([published.acknowledged, deliver(numbered)]);
      if (!isConfirmed) await this.#publishAgain(named, remote);
    }
  }

  async #publishWithoutRedis(
    change: Change,
    { remote, deliver }: { remote: Remote; deliver: Deliver },
  ): Promise<void> {
    if (change.kind === 'raise') {
      if (remote.writesWithout !== 'refuse') return;
      // The write will not be sent, so nothing else lowers its fence.
      const { key, fence } = change;
      await deliver({ kind: 'unchanged', key, fence });
      throw notConfirmed();
    }
    await deliver(change);
    if (!isInvalidation(change)) return;
    if (change.kind === 'unknown') remote.pending.add(change);
    else await this.#publishAgain(change, remote);
  }

  /** Reported when Redis is back, without a barrier; then published once more to wait for the acknowledgements. */
  async #publishAgain(change: Change, { member, pending, writesWithout }: Remote): Promise<void> {
    pending.add(change);
    while (await member.waitForReturn(UNKNOWN_TO_OTHERS_MS)) {
      const published = await member.publish(change);
      if (await published?.acknowledged) return;
      pending.add(change);
    }
    if (writesWithout === 'refuse') throw notConfirmed();
  }
}

/** Puts the member that raises a fence into its name. */
const withMember = (change: Change, prefix: string): Change =>
  'fence' in change ? { ...change, fence: `${prefix}.${change.fence}` } : change;

const notConfirmed = (): ServiceError => new ServiceError('NOT_CONFIRMED', { retryAfterMs: 1000 });
