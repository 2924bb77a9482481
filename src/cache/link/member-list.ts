// The member list in Redis: a sorted set with the end of each membership as score (Redis clock, ms).
import type { Clock } from '../../clock.js';
import {
  LEASE_WAIT_MS,
  MAX_DRIFT,
  MAX_REDIS_CLOCK_STEP_MS,
  MAX_RENEWAL_DELAY_MS,
  MEMBERSHIP_MS,
} from '../coherence/lease.js';
import { EXPEL, NOT_PERMITTED, RENEW } from '../redis/coherence-scripts.js';
import type { RedisCommands } from '../redis/commands.js';

export interface Renewal {
  /** State before the renewal. `absent`: expelled or removed, until it joins. `late`: came too late, changed nothing. */
  was: 'listed' | 'lapsed' | 'absent' | 'late';
  /** Members whose membership has expired. */
  lapsed: string[];
  /** Least age of the list (ms), which is recreated after a start, a flush or a failover of Redis. */
  listAgeMs: number;
  /**
   * Whether members have not returned: those that lapsed, and those that had lapsed in a list that was lost
   * since this member's lease ended, because the new list does not show them.
   */
  areMissing: boolean;
  /** Whether another member's lease proves that this server stayed the master; one on a newer list proves nothing. */
  isVouched: boolean;
}

const LEASES = ['none', 'new', 'long'] as const;

interface RenewalOptions {
  joins: boolean;
  /**
   * `long`: a lease held for longer than `MEMBERSHIP_MS`. Redis then removes the members that lapsed more than
   * `MEMBERSHIP_MS` ago, which this member has handled.
   */
  lease: (typeof LEASES)[number];
}

/** The other members that may hold a lease. */
export interface OtherMembers {
  /** Membership end (Redis clock, ms), by member. */
  ends: Map<string, string>;
  /** Remaining time for which the list may lack members with a lease (ms). */
  incompleteForMs: number;
}

export class MemberList {
  /** Creation time of the list: its score (Redis clock), and its upper bound on the monotonic clock (ms). */
  #created = { score: '', at: Infinity };
  /** The Redis clock in the last reply, and the monotonic clock at its arrival (both in ms). `mark`: that of its server run. */
  #redisClock: { mark: string; now: number; at: number } | undefined;
  /** Send time (monotonic, ms) of the last renewal, which Redis may have executed unanswered, or this member's start. */
  renewedAt: number;
  /** Approximate number of members. */
  count = 1;
  #distrustedAt = -Infinity;
  #hasLeft = false;
  /** Whether the list has lapsed members, and whether a lost one had, since this member's lease ended. */
  #lapsed = { areListed: false, areLost: false };
  /** Members without a lease, with the end of their membership. */
  readonly #leaseEnded = new Map<string, string>();

  constructor(
    private readonly commands: RedisCommands,
    private readonly clock: Clock,
    private readonly id: string,
  ) {
    this.renewedAt = clock.monotonic();
  }

  get #name(): string {
    return this.commands.membersName;
  }

  /** The list entry that names the server run. A list from before a restart or a failover has a different mark. */
  get #mark(): string {
    return `run:${this.commands.runOf(this.#name) ?? ''}`;
  }

  /** Renews the membership. @throws Error when Redis fails or runs the renewal too late, or after this member has left */
  async renew(how: RenewalOptions): Promise<Renewal> {
    // The first renewal only reads the Redis clock, which is unknown before the first reply of a server run: by that of a
    // former server, a renewal that a hung one runs later might not be late.
    if (this.#redisClock?.mark !== this.#mark) await this.#renew(how);
    const renewed = await this.#renew(how);
    if (renewed.was === 'late') throw new Error('the renewal reached Redis too late');
    return renewed;
  }

  async #renew({ joins, lease }: RenewalOptions): Promise<Renewal> {
    if (this.#hasLeft) throw new Error('this member has left');
    const formerlyAt = this.renewedAt;
    const sentAt = this.clock.monotonic();
    this.renewedAt = sentAt;
    const mark = this.#mark;
    const flags = [joins ? 1 : 0, LEASES.indexOf(lease)];
    const times = [this.#redisTime(mark), MAX_RENEWAL_DELAY_MS];
    const { publish, ofGroup } = this.commands.channels;
    const args = [this.id, MEMBERSHIP_MS, ...flags, mark, ...times, publish, ofGroup('bans')];
    const reply = await this.commands.script(RENEW, [this.#name], args).catch((error: unknown) => {
      // Refused before the script has changed anything: otherwise a write would wait for as long as the right is missing. A
      // later renewal may have been executed.
      const isRefused = error instanceof Error && error.message.startsWith(NOT_PERMITTED);
      if (isRefused && this.renewedAt === sentAt) this.renewedAt = formerlyAt;
      throw error;
    });
    const [was, count, lapsed, score, ageMs, now, vouchers] = reply as [
      ...[Renewal['was'], number, string[]],
      ...[string, number, string, number],
    ];
    const at = this.clock.monotonic();
    this.#redisClock = { mark, now: Number(now), at };
    if (lease !== 'none') this.#lapsed = { areListed: false, areLost: false };
    else if (was !== 'late') this.#noteLapsed(lapsed, score !== this.#created.score);
    // Not updated: the clock of Redis may be set while the list exists, and may have been set ahead before.
    if (was !== 'late' && score !== this.#created.score)
      this.#created = { score, at: at - Math.max(0, ageMs - MAX_REDIS_CLOCK_STEP_MS) };
    if (count > 0) this.count = count;
    const { areLost } = this.#lapsed;
    const areMissing = areLost || lapsed.length > 0;
    return { was, lapsed, listAgeMs: at - this.#created.at, areMissing, isVouched: vouchers > 0 && !areLost };
  }

  #noteLapsed(lapsed: readonly string[], isNewList: boolean): void {
    const { areListed, areLost } = this.#lapsed;
    this.#lapsed = { areListed: lapsed.length > 0, areLost: areLost || (isNewList && areListed) };
  }

  /** Returns a lower bound of the Redis clock (ms); 0 before the first reply of this server run. */
  #redisTime(mark: string): number {
    if (this.#redisClock?.mark !== mark) return 0;
    const { now, at } = this.#redisClock;
    return Math.floor(now + (this.clock.monotonic() - at) / MAX_DRIFT);
  }

  async others(): Promise<OtherMembers> {
    const mark = this.#mark;
    const reply = (await this.commands.command('ZRANGE', this.#name, 0, -1, 'WITHSCORES')) as string[];
    const ends = new Map<string, string>();
    for (let at = 0; at < reply.length; at += 2) ends.set(reply[at] ?? '', reply[at + 1] ?? '');
    const isKnown = ends.get(mark) === this.#created.score;
    ends.delete(mark);
    ends.delete(this.id);
    for (const [member, end] of this.#leaseEnded) {
      if (ends.get(member) === end) ends.delete(member);
      else this.#leaseEnded.delete(member);
    }
    // Members missing from the list got their lease before it was created.
    const now = this.clock.monotonic();
    const since = isKnown ? Math.max(this.#created.at, this.#distrustedAt) : now;
    return { ends, incompleteForMs: Math.max(0, LEASE_WAIT_MS - (now - since)) };
  }

  /** Treats the list as newly created, because it may lack members with a lease. */
  distrust(): void {
    this.#distrustedAt = this.clock.monotonic();
  }

  /** Excludes the member from `others` until it renews. */
  markLeaseEnded(member: string, end: string): void {
    this.#leaseEnded.set(member, end);
  }

  /** Expels members: they learn of it from their next renewal, and all others treat their membership as ended. */
  async expel(members: readonly string[]): Promise<void> {
    await this.commands.script(EXPEL, [this.#name], members);
  }

  /** The others stop waiting for this member. */
  async leave(): Promise<void> {
    this.#hasLeft = true;
    await this.commands.command('ZREM', this.#name, this.id);
  }
}
