// The members that share a Redis: a sorted set of their ids by the end of their membership (Redis clock).
import type { Clock } from '../clock.js';
import { LEASE_MS, LEASE_WAIT_MS, MAX_DRIFT, MEMBERSHIP_MS } from '../coherence/lease.js';
import { EXPEL, RENEW } from '../redis/coherence-scripts.js';
import type { LinkCommands } from '../redis/commands.js';

export interface Renewal {
  /**
   * What this member was before. One that is absent has been expelled or removed, and stays so unless it joins. `late`: the
   * renewal came too late, and nothing was done.
   */
  was: 'listed' | 'lapsed' | 'absent' | 'late';
  count: number;
  /** Those whose membership has ended. */
  lapsed: string[];
  /** Those of them that this call has removed. */
  removed: string[];
  /** How long ago the list was begun: Redis was started, flushed, or has taken over then (ms). */
  listAgeMs: number;
}

/** The other members that may have a lease. */
export interface OtherMembers {
  /** The end of the membership of each. */
  ends: Map<string, string>;
  /** For so long there may be members with a lease that are not listed (ms). */
  incompleteForMs: number;
}

export class Members {
  readonly #commands: LinkCommands;
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #id: string;
  /** When the list was begun: on the clock of Redis, and at the latest on that of this process. */
  #begun = { score: '', at: Infinity };
  /** The clock of Redis (ms) when a reply was sent, and that of this process when it arrived. */
  #redisClock: { now: number; at: number } | undefined;
  #renewedAt: number;
  /** Members whose lease is over, with the end of their membership. */
  readonly #over = new Map<string, string>();

  constructor(commands: LinkCommands, clock: Pick<Clock, 'monotonic'>, id: string) {
    this.#commands = commands;
    this.#clock = clock;
    this.#id = id;
    this.#renewedAt = clock.monotonic();
  }

  get #name(): string {
    return `${this.#commands.keyPrefix}members`;
  }

  /** Stands in the list beside the members. A list from before a restart or a failover has another. */
  get #mark(): string {
    return `run:${this.#commands.runOf(this.#name) ?? ''}`;
  }

  /** When a renewal was sent last, or when this member started (monotonic). Without a reply it may have been carried out all the same. */
  get renewedAt(): number {
    return this.#renewedAt;
  }

  async renew(how: { joins: boolean; removes: boolean }): Promise<Renewal> {
    // Before the first reply the clock of Redis is not known: that renewal only gives it.
    if (this.#redisClock === undefined) await this.#renew(how);
    return this.#renew(how);
  }

  async #renew({ joins, removes }: { joins: boolean; removes: boolean }): Promise<Renewal> {
    this.#renewedAt = this.#clock.monotonic();
    const flags = [joins ? 1 : 0, removes ? 1 : 0];
    const args = [this.#id, MEMBERSHIP_MS, ...flags, this.#mark, this.#redisTime(), LEASE_MS];
    const reply = (await this.#commands.script(RENEW, [this.#name], args)) as [
      ...[Renewal['was'], number, string[], string[]],
      ...[string, number, string],
    ];
    const [was, count, lapsed, removed, score, listAgeMs, now] = reply;
    const at = this.#clock.monotonic();
    this.#redisClock = { now: Number(now), at };
    if (was !== 'late') this.#begun = { score, at: at - listAgeMs };
    return { was, count, lapsed, removed, listAgeMs };
  }

  /** No later than what the clock of Redis shows; 0 when that is not known. */
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
    const isKnown = ends.get(mark) === this.#begun.score;
    ends.delete(mark);
    ends.delete(this.#id);
    for (const [member, end] of this.#over) {
      if (ends.get(member) === end) ends.delete(member);
      else this.#over.delete(member);
    }
    // Whoever is not listed got its lease before the list was begun.
    const ageMs = isKnown ? this.#clock.monotonic() - this.#begun.at : 0;
    return { ends, incompleteForMs: Math.max(0, LEASE_WAIT_MS - ageMs) };
  }

  /** The lease of the member is over: nobody waits for it until it renews. */
  markLeaseEnded(member: string, end: string): void {
    this.#over.set(member, end);
  }

  /** They learn of it when they renew; to all others their membership has ended. */
  async expel(members: readonly string[]): Promise<void> {
    await this.#commands.script(EXPEL, [this.#name], members);
  }

  /** Nobody need wait for this member any more. */
  async leave(): Promise<void> {
    await this.#commands.command('ZREM', this.#name, this.#id);
  }
}
