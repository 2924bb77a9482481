// The members that share a Redis, as a sorted set by the end of their membership (Redis clock): renew, expel, leave.
import type { Clock } from '../clock.js';
import { LEASE_MS, LEASE_WAIT_MS, MAX_DRIFT, MEMBERSHIP_MS } from '../coherence/lease.js';
import { EXPEL, RENEW } from '../redis/coherence-scripts.js';
import type { LinkCommands } from '../redis/commands.js';

export interface Renewal {
  /**
   * State of this member before the call. An absent member was expelled or removed, and stays so unless it joins. `late`: the
   * renewal reached Redis too late and changed nothing.
   */
  was: 'listed' | 'lapsed' | 'absent' | 'late';
  /** Members whose membership has ended. */
  lapsed: string[];
  /** Age of the list (ms). It is created after a start, a flush or a failover of Redis. */
  listAgeMs: number;
  /** Whether another member has a lease, which shows that this server has been the master since. */
  isVouched: boolean;
}

const LEASES = ['none', 'new', 'long'] as const;

interface RenewalOptions {
  joins: boolean;
  /** `long`: held for longer than a membership. This member has seen all members that lapsed before, so they are removed. */
  lease: (typeof LEASES)[number];
}

/** The other members that may have a lease. */
export interface OtherMembers {
  /** End of the membership, by member. */
  ends: Map<string, string>;
  /** Time during which members with a lease may be missing from the list (ms). */
  incompleteForMs: number;
}

export class MemberList {
  readonly #commands: LinkCommands;
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #id: string;
  /** Creation of the list: its score (Redis clock), and the latest possible moment on the monotonic clock. */
  #created = { score: '', at: Infinity };
  /** The Redis clock (ms) when a reply was sent, and the monotonic clock when it arrived. */
  #redisClock: { now: number; at: number } | undefined;
  #renewedAt: number;
  /** Approximate number of members. */
  #count = 1;
  #distrustedAt = -Infinity;
  #hasLeft = false;
  /** Members whose lease has ended, with the end of their membership. */
  readonly #leaseEnded = new Map<string, string>();

  constructor(commands: LinkCommands, clock: Pick<Clock, 'monotonic'>, id: string) {
    this.#commands = commands;
    this.#clock = clock;
    this.#id = id;
    this.#renewedAt = clock.monotonic();
  }

  get #name(): string {
    return `${this.#commands.keyPrefix}members`;
  }

  /** The list entry that names the server run: a list from before a restart or a failover has another one. */
  get #mark(): string {
    return `run:${this.#commands.runOf(this.#name) ?? ''}`;
  }

  /** When the last renewal was sent, or this member started (monotonic). Redis may have run it even without a reply. */
  get renewedAt(): number {
    return this.#renewedAt;
  }

  get count(): number {
    return this.#count;
  }

  /** @throws Error when Redis fails, or after this member has left */
  async renew(how: RenewalOptions): Promise<Renewal> {
    // Before the first reply the Redis clock is not known: the first renewal only reads it.
    if (this.#redisClock === undefined) await this.#renew(how);
    return this.#renew(how);
  }

  async #renew({ joins, lease }: RenewalOptions): Promise<Renewal> {
    if (this.#hasLeft) throw new Error('this member has left');
    this.#renewedAt = this.#clock.monotonic();
    const flags = [joins ? 1 : 0, LEASES.indexOf(lease)];
    const args = [this.#id, MEMBERSHIP_MS, ...flags, this.#mark, this.#redisTime(), LEASE_MS];
    const reply = await this.#commands.script(RENEW, [this.#name], args);
    const [was, count, lapsed, score, listAgeMs, now, vouchers] = reply as [
      ...[Renewal['was'], number, string[]],
      ...[string, number, string, number],
    ];
    const at = this.#clock.monotonic();
    this.#redisClock = { now: Number(now), at };
    if (was !== 'late') this.#created = { score, at: at - listAgeMs };
    if (count > 0) this.#count = count;
    return { was, lapsed, listAgeMs, isVouched: vouchers > 0 };
  }

  /** A lower bound of the Redis clock; 0 when it is not known. */
  #redisTime(): number {
    if (this.#redisClock === undefined) return 0;
    const { now, at } = this.#redisClock;
    return Math.floor(now + (this.#clock.monotonic() - at) / MAX_DRIFT);
  }

  async others(): Promise<OtherMembers> {
    const mark = this.#mark;
    const reply = (await this.#commands.command('ZRANGE', this.#name, 0, -1, 'WITHSCORES')) as string[];
    const ends = new Map<string, string>();
    for (let at = 0; at < reply.length; at += 2) ends.set(reply[at] ?? '', reply[at + 1] ?? '');
    const isKnown = ends.get(mark) === this.#created.score;
    ends.delete(mark);
    ends.delete(this.#id);
    for (const [member, end] of this.#leaseEnded) {
      if (ends.get(member) === end) ends.delete(member);
      else this.#leaseEnded.delete(member);
    }
    // A member that is not listed got its lease before the list was created.
    const now = this.#clock.monotonic();
    const since = isKnown ? Math.max(this.#created.at, this.#distrustedAt) : now;
    return { ends, incompleteForMs: Math.max(0, LEASE_WAIT_MS - (now - since)) };
  }

  /** Treats the list as just created: members with a lease may be missing from it. */
  distrust(): void {
    this.#distrustedAt = this.#clock.monotonic();
  }

  /** Excludes the member from `others` until it renews. */
  markLeaseEnded(member: string, end: string): void {
    this.#leaseEnded.set(member, end);
  }

  /** An expelled member notices with its next renewal; all others treat its membership as ended. */
  async expel(members: readonly string[]): Promise<void> {
    await this.#commands.script(EXPEL, [this.#name], members);
  }

  /** Other members stop waiting for this one, which cannot join again. */
  async leave(): Promise<void> {
    this.#hasLeft = true;
    await this.#commands.command('ZREM', this.#name, this.#id);
  }
}
