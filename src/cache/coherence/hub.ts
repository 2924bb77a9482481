// Publishes changes: to the processes of this machine, and through Redis to the other instances.
import { ServiceError } from '../../errors.js';
import { LEASE_MS, LEASE_WAIT_MS, MAX_DRIFT, MEMBERSHIP_MS, RENEW_EVERY_MS } from './lease.js';
import { type Change, type Message, isInvalidation } from './message.js';
import type { PendingInvalidations } from './pending-invalidations.js';

/** What becomes of a write that cannot be published. */
export type WritesWithout = 'wait' | 'refuse';

/** Applies a message in every process of this machine; what an instance elsewhere published comes `from` none. */
export type Deliver = (message: Message, from?: number) => Promise<void>;

export interface HubDeps {
  /** The clock of entries (ms since the epoch). */
  now: () => number;
  deliver: Deliver;
  /** Where Redis is used. */
  remote?: Remote | undefined;
}

export interface Remote {
  member: Membership;
  pending: PendingInvalidations;
  writesWithout: WritesWithout;
  /** How old an answer may be while the lease is over (ms). */
  lostMaxAgeMs: number;
}

/** Maximum step of the clock of Redis. */
const MAX_REDIS_CLOCK_STEP_MS = 1000;

/**
 * After this time since its last renewal was sent, the membership of an instance has ended: Redis runs a renewal within
 * the length of a lease, or not at all. Every other instance has learnt that with its own renewal, or has lost its lease,
 * and has made stale the entries under the fences of this one.
 */
const UNKNOWN_TO_OTHERS_MS =
  MAX_DRIFT * (LEASE_MS + MEMBERSHIP_MS + MAX_REDIS_CLOCK_STEP_MS) + LEASE_WAIT_MS + RENEW_EVERY_MS;

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
    if (this.isLinked()) return 0;
    return this.#deps.now() - (this.#deps.remote?.lostMaxAgeMs ?? 0);
  }

  /** `from`: the process that publishes it. Redis first, so that nothing it gave before is copied into memory after. */
  async publish(change: Change, from = 0): Promise<void> {
    const { remote } = this.#deps;
    const deliver = (message: Message): Promise<void> => this.#deps.deliver(message, from);
    const named = withMember(change, `${remote?.member.id ?? 'local'}/${from}`);
    if (remote === undefined) {
      await deliver(named);
      return;
    }
    // Memory needs the fence only for a writer that dies: nobody waits for that.
    if (named.kind === 'raise') void deliver(named);
    const published = await remote.member.publish(named);
    if (published === undefined) await this.#publishWithoutRedis(named, { remote, deliver });
    else if (named.kind !== 'raise') {
      const told = named.kind === 'ban' ? { ...named, number: published.seq } : named;
      const [isConfirmed] = await Promise.all([published.acknowledged, deliver(told)]);
      if (!isConfirmed) await this.#publishAgain(named, remote);
    }
  }

  async #publishWithoutRedis(
    change: Change,
    { remote, deliver }: { remote: Remote; deliver: Deliver },
  ): Promise<void> {
    if (change.kind === 'raise') {
      if (remote.writesWithout !== 'refuse') return;
      // The write will not be sent: nothing else lowers its fence.
      const { key, fence } = change;
      await deliver({ kind: 'unchanged', key, fence });
      throw notConfirmed();
    }
    await deliver(change);
    if (!isInvalidation(change)) return;
    if (change.kind === 'unknown') remote.pending.add(change);
    else await this.#publishAgain(change, remote);
  }

  /** When Redis is back it has been reported already; this time the acknowledgements are waited for. */
  async #publishAgain(change: Change, { member, pending, writesWithout }: Remote): Promise<void> {
    pending.add(change);
    while (await member.returned(UNKNOWN_TO_OTHERS_MS)) {
      const published = await member.publish(change);
      if (await published?.acknowledged) return;
      pending.add(change);
    }
    if (writesWithout === 'refuse') throw notConfirmed();
  }
}

/** The name of a fence tells what member has raised it. */
const withMember = (change: Change, prefix: string): Change =>
  'fence' in change ? { ...change, fence: `${prefix}.${change.fence}` } : change;

const notConfirmed = (): ServiceError => new ServiceError('NOT_CONFIRMED', { retryAfterMs: 1000 });

export interface Coherence {
  /**
   * Publishes a change to every process that caches. Settles when no instance answers with what it invalidates. The name
   * of a fence is unique in its process.
   *
   * @throws ServiceError NOT_CONFIRMED when that cannot be known (`redis.writesWithout: refuse`)
   */
  publish: (change: Change) => Promise<void>;
  /** Entries from before this moment (ms since the epoch) do not count as fresh. */
  trustedSince: () => number;
  /** Whether the changes of other instances are received. */
  isLinked: () => boolean;
}

export interface Published {
  /** Its number; a ban is known by it. */
  seq: number;
  /** True: no other member answers with what the change invalidates. False: that cannot be known. */
  acknowledged: Promise<boolean>;
}

export interface Membership {
  readonly id: string;
  /** 0: changes may be missed. */
  leaseLeftMs: () => number;
  /** Undefined: Redis could not be told. */
  publish: (change: Change) => Promise<Published | undefined>;
  /** True: Redis is back, and pending changes were reported. False: `afterRenewalMs` have passed since the last renewal. */
  returned: (afterRenewalMs: number) => Promise<boolean>;
}
