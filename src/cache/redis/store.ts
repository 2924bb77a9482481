// The Redis tier: entries shared by all instances, each tagged with its server run and ban number.
import type { Bans } from '../coherence/bans.js';
import type { Replacement } from '../coherence/message.js';
import { type Entry, RUN_LENGTH, decodeEntry, encodeEntry, originOf, shiftTimes } from '../entry.js';
import type { Lookup, RedisTicket } from '../store.js';
import { STORE, SYNC, TICKET } from './coherence-scripts.js';
import type { RedisCommands } from './commands.js';
import { entryPattern, groupNames, keyOfEntry } from './namespace.js';

type TicketReply = [run: string | null, seq: string | null, fences: string | null, redisTime: string];

export interface RedisStoreDeps {
  commands: RedisCommands;
  /** Returns undefined until the bans have been read from Redis. */
  bans: () => Bans | undefined;
  /** Whether this instance holds a lease. Without a lease, Redis may contain invalidated entries. */
  isLinked: () => boolean;
  now: () => number;
}

/** Maximum number of entries to try: if some belong to an earlier server run, usually all do. */
const MAX_TRIES = 20;

export class RedisStore {
  constructor(private readonly deps: RedisStoreDeps) {}

  /**
   * Reads the entry before the group state, so that the state covers every change that the entry misses. The
   * time that the reply takes makes entries older, never younger.
   */
  async get(key: string): Promise<Lookup<RedisTicket>> {
    const { commands, now } = this.deps;
    const bans = this.#currentBans();
    if (bans === undefined) return MISS;
    const [entryName, stateName] = groupNames(commands.keyPrefix, key);
    const ban = bans.latest;
    const sentAt = now();
    const reply = await commands.run('get', (redis) =>
      // MGET returns null for a key of a different type; GET would fail.
      Promise.all([redis.mgetBuffer(entryName), commands.script(TICKET, [stateName], [key])]),
    );
    if (reply === undefined) return MISS;
    const [[buffer], ticket] = reply;
    const [run, seq, fences, redisTime] = ticket as TicketReply;
    // The server may contain invalidated entries after a restart or a failover.
    const serverRun = commands.runOf(stateName);
    // Recreates an evicted or flushed group state, or that of another run, without which no entry of the group can be stored.
    if (run !== serverRun && serverRun !== undefined)
      void commands.run('open', () => commands.script(SYNC, [stateName], [serverRun]));
    if (run === null || run !== serverRun) return MISS;
    const fromRedisMs = sentAt - Number(redisTime);
    return {
      entry: buffer ? this.#decode(key, buffer, bothRuns(run, bans.run), fromRedisMs) : undefined,
      from: 'redis',
      ticket: {
        ...{ run, bansRun: bans.run, seq: Number(seq), ban, isFenced: fences !== null },
        redisClockMs: Number(redisTime) - now(),
      },
    };
  }

  isReadable(): boolean {
    return this.deps.commands.isUp() && this.#currentBans() !== undefined;
  }

  /** Returns whether Redis contains a usable entry. Scans only a part of a large database. */
  async holdsEntry(): Promise<boolean> {
    let tries = 0;
    try {
      for await (const key of scanKeys(this.deps.commands)) {
        if ((await this.get(key)).entry !== undefined) return true;
        if (++tries === MAX_TRIES) return false;
      }
    } catch {
      // Redis is unavailable, or the user may not run SCAN; the cache works without Redis.
    }
    return false;
  }

  /** Returns undefined while Redis must not be read: without a lease, or before this run's bans are known. */
  #currentBans(): Bans | undefined {
    const { commands, isLinked } = this.deps;
    const bans = this.deps.bans();
    return isLinked() && bans?.run === commands.runOf(commands.bansName) ? bans : undefined;
  }

  /** `run`: that of the entries that may be read. `fromRedisMs`: time of this process minus the Redis clock. */
  #decode(key: string, buffer: Buffer, run: string, fromRedisMs: number): Entry | undefined {
    const stored = decodeEntry(key, buffer);
    if (stored === undefined) return undefined;
    const origin = originOf(buffer);
    const entry = shiftTimes(stored, fromRedisMs);
    // The age of an entry from the future is unknown: the clock of Redis was set back.
    if (origin.run !== run || entry.requestedAt > this.deps.now()) return undefined;
    return this.deps.bans()?.apply(key, entry, origin.ban);
  }

  accepts(key: string, ticket: RedisTicket): boolean {
    if (ticket === undefined) return true;
    const bans = this.deps.bans();
    return bans?.run === ticket.bansRun && !bans.isBannedSince(key, ticket.ban);
  }

  /** Encodes an entry for the Redis scripts; returns undefined if it must not be stored. */
  replacement(key: string, entry: Entry, ticket: RedisTicket): Replacement | undefined {
    const lifeMs = Math.ceil(entry.deleteAt - this.deps.now());
    if (ticket === undefined || lifeMs <= 0 || !this.accepts(key, ticket)) return undefined;
    const { run, bansRun, seq, ban, redisClockMs } = ticket;
    const stored = shiftTimes(entry, redisClockMs);
    return { run, seq, bytes: encodeEntry(key, stored, { run: bothRuns(run, bansRun), ban }), lifeMs };
  }

  /** Returns false if Redis refused the entry, undefined if Redis was not used or did not reply. */
  async set(key: string, entry: Entry, ticket: RedisTicket): Promise<boolean | undefined> {
    const { commands } = this.deps;
    if (!this.accepts(key, ticket)) return false;
    const load = this.replacement(key, entry, ticket);
    if (load === undefined) return undefined;
    const args = [load.run, load.seq, key, load.bytes, load.lifeMs];
    const stored = await commands.run('set', () =>
      commands.script(STORE, groupNames(commands.keyPrefix, key), args),
    );
    return stored === undefined ? undefined : stored === 1;
  }
}

/** Combines two runs: in a cluster, an entry and the bans it depends on may be on different masters. */
const bothRuns = (run: string, bansRun: string): string =>
  run === bansRun ? run : run.slice(0, RUN_LENGTH / 2) + bansRun.slice(0, RUN_LENGTH / 2);

const MISS: Lookup<RedisTicket> = { entry: undefined, from: 'redis', ticket: undefined };

const SCAN_COUNT = 1000;
/** Maximum number of SCAN commands per master: a shared database may contain many unrelated keys. */
const MAX_SCANS = 100;
const SCAN_TIMEOUT_MS = 2000;

/** Scans entry keys, including those of unusable entries (from an earlier server run). @throws Error when Redis fails */
async function* scanKeys(commands: RedisCommands): AsyncGenerator<string> {
  const { keyPrefix } = commands;
  const pattern = entryPattern(keyPrefix);
  for (const { client } of commands.masters()) {
    let cursor = '0';
    for (let scans = 0; scans < MAX_SCANS; scans++) {
      const scan = client.scan(cursor, 'MATCH', pattern, 'COUNT', SCAN_COUNT);
      const [next, names] = await commands.attempt(scan, SCAN_TIMEOUT_MS);
      for (const name of names) yield keyOfEntry(keyPrefix, name);
      if (next === '0') break;
      cursor = next;
    }
  }
}
