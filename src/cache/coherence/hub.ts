// Publishes changes to the memory of this process and, through Redis, to the other instances.
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

export interface Published {
  /** The message number; it identifies a ban. */
  seq: number;
  /** Whether Redis has stored the replacement. */
  isStored: boolean;
  /** Resolves to true when no other member answers with invalidated entries any more, to false if that is unconfirmed. */
  acknowledged: Promise<boolean>;
}

/** An instance as one of the members that share a Redis. */
export interface Membership {
  readonly id: string;
  /** Remaining time of the lease (ms); 0 when messages may have been missed. */
  leaseLeftMs: () => number;
  /** Whether it has started, or was expelled, and is about to join: other members do not wait for it yet. */
  isJoining: () => boolean;
  /** Undefined if Redis has not confirmed the publication. */
  publish: (change: Change) => Promise<Published | undefined>;
  /** Resolves to true when Redis is back and has the pending invalidations, to false `afterRenewalMs` after the last renewal. */
  waitForReturn: (afterRenewalMs: number) => Promise<boolean>;
}

/** Whether a write that cannot be published waits until it is safe (`wait`) or answers 503 (`refuse`). */
export type WritesWithout = 'wait' | 'refuse';

/** Applies a message to the memory of this process. */
export type Deliver = (message: Message) => void;

interface HubDeps {
  /** The clock of entries (ms since the epoch). */
  now: () => number;
  deliver: Deliver;
  /** Undefined without Redis. */
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

/** Maximum number of returns of Redis that an unconfirmed change waits for. */
const MAX_RETURNS = 3;

export class Hub {
  readonly #deps: HubDeps;

  constructor(deps: HubDeps) {
    this.#deps = deps;
  }

  /** Whether this process receives the changes of other instances. */
  isLinked(): boolean {
    const { remote } = this.#deps;
    return remote === undefined || remote.member.leaseLeftMs() > 0;
  }

  /** Entries from before this moment (ms since the epoch) do not count as fresh. */
  trustedSince(): number {
    const { now, remote } = this.#deps;
    if (remote === undefined || this.isLinked()) return 0;
    return remote.member.isJoining() ? Infinity : now() - remote.lostMaxAgeMs;
  }

  /**
   * Publishes a change. Settles when no instance answers with invalidated entries any more. The name of a fence is
   * unique in its process. Redis comes first, so that no older Redis entry is copied into memory afterwards.
   *
   * @throws ServiceError NOT_CONFIRMED when that cannot be known: Redis is not back (`redis.writesWithout: refuse`), or was
   * lost again each time
   */
  async publish(change: Change): Promise<void> {
    const { remote } = this.#deps;
    const named = withMember(change, remote?.member.id ?? 'local');
    if (remote === undefined) {
      this.#deps.deliver(named);
      return;
    }
    if (named.kind === 'raise') this.#deps.deliver(named);
    const published = await remote.member.publish(named);
    if (published === undefined) await this.#publishWithoutRedis(named, remote);
    else if (named.kind !== 'raise') {
      // Memory keeps the replacement that Redis has stored.
      if (!published.isStored)
        this.#deps.deliver(named.kind === 'ban' ? { ...named, number: published.seq } : named);
      if (!(await published.acknowledged)) await this.#publishAgain(named, remote);
    }
  }

  async #publishWithoutRedis(change: Change, remote: Remote): Promise<void> {
    if (change.kind === 'raise') {
      if (remote.writesWithout !== 'refuse') return;
      // The write will not be sent, so nothing else lowers its fence.
      const { key, fence } = change;
      this.#deps.deliver({ kind: 'unchanged', key, fence });
      throw notConfirmed();
    }
    this.#deps.deliver(change);
    if (isInvalidation(change)) await this.#publishAgain(change, remote);
  }

  /** The member reports the change, without a barrier, when Redis is back; it is then published again with a barrier. */
  async #publishAgain(change: Change, { member, pending, writesWithout }: Remote): Promise<void> {
    pending.add(change);
    if (change.kind === 'unknown' || (change.kind === 'forget' && change.isUnchanged)) return;
    for (let returns = 0; await member.waitForReturn(UNKNOWN_TO_OTHERS_MS); returns++) {
      if (returns === MAX_RETURNS) throw notConfirmed();
      const published = await member.publish(change);
      if (await published?.acknowledged) return;
      pending.add(change);
    }
    if (writesWithout === 'refuse') throw notConfirmed();
  }
}

/** Adds the member to the name of its fence. */
const withMember = (change: Change, member: string): Change =>
  'fence' in change ? { ...change, fence: `${member}/${change.fence}` } : change;

const notConfirmed = (): ServiceError => new ServiceError('NOT_CONFIRMED', { retryAfterMs: 1000 });
