// Publishes changes to local memory and, through Redis, to the other instances.
import { ServiceError } from '../../errors.js';
import {
  INSTANCE_LEASE_RENEWAL_MS,
  LEASE_MS,
  LEASE_WAIT_MS,
  MAX_DRIFT,
  MAX_REDIS_CLOCK_STEP_MS,
  MEMBERSHIP_MS,
} from '../coherence/lease.js';
import { type Change, type Deliver, isInvalidation } from '../coherence/message.js';
import type { PendingInvalidations } from '../coherence/pending-invalidations.js';
import type { Member } from './member.js';

/** The membership of this instance, as far as the hub uses it. */
export type Membership = Pick<
  Member,
  'id' | 'pauses' | 'leaseLeftMs' | 'isJoining' | 'publish' | 'waitForReturn'
>;

/** Whether a write that cannot be published waits until it is safe (`wait`) or fails with 503 (`reject`). */
export type DisconnectedWrites = 'wait' | 'reject';

interface HubDeps {
  /** Wall clock (ms since the epoch). */
  now: () => number;
  deliver: Deliver;
  /** Undefined without Redis. */
  remote?: Remote | undefined;
}

interface Remote {
  member: Membership;
  pending: PendingInvalidations;
  disconnectedWrites: DisconnectedWrites;
  /** Age up to which an entry counts as fresh while there is no lease (ms). */
  disconnectedMaxAgeMs: number;
}

/**
 * Maximum time from an instance's last renewal until no other instance relies on its membership. Redis runs a renewal
 * within the lease time or not at all. By then, each other instance has either learnt of the end of this membership
 * from its own renewal, and made the entries under this instance's fences stale, or lost its own lease.
 */
const UNKNOWN_TO_OTHERS_MS =
  MAX_DRIFT * (LEASE_MS + MEMBERSHIP_MS + MAX_REDIS_CLOCK_STEP_MS) +
  LEASE_WAIT_MS +
  INSTANCE_LEASE_RENEWAL_MS;

/** Maximum number of times that an unconfirmed change is published again after an outage. */
const MAX_RETURNS = 3;

export class Hub {
  constructor(private readonly deps: HubDeps) {}

  /** Whether this process reliably receives changes from other instances. */
  isLinked(): boolean {
    const { remote } = this.deps;
    return remote === undefined || remote.member.leaseLeftMs() > 0;
  }

  /** Returns the time (ms since the epoch) before which loaded entries do not count as fresh. */
  trustedSince(): number {
    const { now, remote } = this.deps;
    if (remote === undefined || this.isLinked()) return 0;
    const { member, disconnectedMaxAgeMs } = remote;
    if (member.isJoining()) return Infinity;
    // After a pause, requests may be read before messages that invalidate. + 1: the wall clock counts whole ms.
    return now() - Math.min(disconnectedMaxAgeMs, member.pauses.uninterruptedMs() + 1);
  }

  /**
   * Publishes a change, and settles once no instance serves invalidated entries. Redis is updated before memory, so
   * that no outdated Redis entry is copied into memory afterwards. A fence name is unique within its process.
   *
   * @throws ServiceError INVALIDATION_UNCONFIRMED if Redis is unavailable (`redis.disconnectedWrites: reject`), or is
   * lost again during each attempt
   */
  async publish(change: Change): Promise<void> {
    const { remote } = this.deps;
    const named = withMember(change, remote?.member.id ?? 'local');
    if (remote === undefined) {
      await this.deps.deliver(named);
      return;
    }
    if (named.kind === 'raise') void this.deps.deliver(named);
    const published = await remote.member.publish(named);
    if (published === undefined) return this.#publishWithoutRedis(named, remote);
    if (named.kind === 'raise') return undefined;
    const numbered = named.kind === 'ban' ? { ...named, number: published.seq } : named;
    // Memory already holds a replacement that Redis has stored.
    const applied = published.isStored ? undefined : this.deps.deliver(numbered);
    if (!(await published.acknowledged)) await this.#publishAgain(named, remote);
    await applied;
  }

  async #publishWithoutRedis(change: Change, remote: Remote): Promise<void> {
    if (change.kind === 'raise') {
      if (remote.disconnectedWrites !== 'reject') return;
      // The write is not sent, so nothing else lowers its fence.
      const { key, fence } = change;
      void this.deps.deliver({ kind: 'unchanged', key, fence });
      throw notConfirmed(AWAY);
    }
    const applied = this.deps.deliver(change);
    if (isInvalidation(change)) await this.#publishAgain(change, remote);
    await applied;
  }

  /** Queues the change, which is reported without a barrier when Redis is back, and then publishes it with a barrier. */
  async #publishAgain(change: Change, { member, pending, disconnectedWrites }: Remote): Promise<void> {
    pending.add(change);
    if (change.kind === 'unknown' || (change.kind === 'forget' && change.isUnchanged)) return;
    for (let returns = 0; await member.waitForReturn(UNKNOWN_TO_OTHERS_MS); returns++) {
      if (returns === MAX_RETURNS) throw notConfirmed('Redis was lost again each time it returned');
      const published = await member.publish(change);
      if (await published?.acknowledged) return;
      pending.add(change);
    }
    if (disconnectedWrites === 'reject') throw notConfirmed(AWAY);
  }
}

/** Adds the member id to the fence name. */
const withMember = (change: Change, member: string): Change =>
  'fence' in change ? { ...change, fence: `${member}/${change.fence}` } : change;

const AWAY = 'Redis is unavailable';

const notConfirmed = (detail: string): ServiceError =>
  new ServiceError('INVALIDATION_UNCONFIRMED', { detail, retryAfterMs: 1000 });
