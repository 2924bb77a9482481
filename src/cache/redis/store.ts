// The Redis tier: entries that all instances share, each with the server run and the ban number that it was loaded under.
import type { Bans } from '../coherence/bans.js';
import type { Replacement } from '../coherence/message.js';
import {
  type Entry,
  type LoadOrigin,
  RUN_LENGTH,
  decodeEntry,
  encodeEntry,
  originOf,
  withoutSkew,
} from '../entry.js';
import type { Lookup } from '../store.js';
import { STORE, SYNC } from './coherence-scripts.js';
import type { RedisCommands } from './commands.js';
import { bansName, entryPattern, groupNames, keyOfEntry } from './namespace.js';

/** Undefined if Redis could not be read. */
export type RedisTicket = (LoadOrigin & { bansRun: string; seq: number; isFenced: boolean }) | undefined;

export interface RedisStoreDeps {
  commands: Pick<RedisCommands, 'isUp' | 'run' | 'keyPrefix' | 'runOf' | 'script' | 'masters' | 'attempt'>;
  /** Undefined while the bans of Redis have not been read. */
  bans: () => Bans | undefined;
  /** Whether there is a lease: without one, Redis may hold entries that are invalidated already. */
  isLinked: () => boolean;
  now: () => number;
}

/** Maximum number of entries tried: if some are of an earlier server run, usually all are. */
const MAX_TRIES = 20;

export class RedisStore {
  readonly #deps: RedisStoreDeps;

  constructor(deps: RedisStoreDeps) {
    this.#deps = deps;
  }

  /** Reads the entry before the state, so that the state includes every change that the entry does not. */
  async get(key: string): Promise<Lookup<RedisTicket>> {
    const { commands } = this.#deps;
    const bans = this.#currentBans();
    if (bans === undefined) return MISS;
    const [entryName, stateName] = groupNames(commands.keyPrefix, key);
    const ban = bans.latest;
    const reply = await commands.run('get', (redis) =>
      // MGET returns null for another type instead of an error.
      Promise.all([redis.mgetBuffer(entryName), redis.hmget(stateName, 'run', 'seq', `f:${key}`)]),
    );
    if (reply === undefined) return MISS;
    const [[buffer], [run = null, seq, fences]] = reply;
    // After a restart or a failover the server may hold invalidated entries.
    const serverRun = commands.runOf(stateName);
    if (run === null && serverRun !== undefined) this.#openState(stateName, serverRun);
    if (run === null || run !== serverRun) return MISS;
    return {
      entry: buffer ? this.#decode(key, buffer, bothRuns(run, bans.run)) : undefined,
      from: 'redis',
      ticket: { run, bansRun: bans.run, seq: Number(seq), ban, isFenced: fences !== null },
    };
  }

  /** Whether reads use Redis now. */
  isReadable(): boolean {
    return this.#deps.commands.isUp() && this.#currentBans() !== undefined;
  }

  /** Whether Redis holds a usable entry. Only a part of a large database is searched. */
  async holdsEntry(): Promise<boolean> {
    let tries = 0;
    try {
      for await (const key of findKeys(this.#deps.commands)) {
        if ((await this.get(key)).entry !== undefined) return true;
        if (++tries === MAX_TRIES) return false;
      }
    } catch {
      // Redis is unavailable, or this user may not scan: the cache works without it.
    }
    return false;
  }

  /** Undefined if Redis must not be read, because bans of the present server run may not be known yet. */
  #currentBans(): Bans | undefined {
    const { commands, isLinked } = this.#deps;
    const bans = this.#deps.bans();
    return isLinked() && bans?.run === commands.runOf(bansName(commands.keyPrefix)) ? bans : undefined;
  }

  /** Creates a state that was evicted or flushed: without one, no entry of its group is stored. */
  #openState(stateName: string, run: string): void {
    const { commands } = this.#deps;
    void commands.run('open', () => commands.script(SYNC, [stateName], [run]));
  }

  #decode(key: string, buffer: Buffer, run: string): Entry | undefined {
    const entry = decodeEntry(key, buffer);
    if (entry === undefined) return undefined;
    const origin = originOf(buffer);
    if (origin.run !== run) return undefined;
    return this.#deps.bans()?.apply(key, withoutSkew(entry, this.#deps.now()), origin.ban);
  }

  accepts(key: string, ticket: RedisTicket): boolean {
    if (ticket === undefined) return true;
    const bans = this.#deps.bans();
    return bans?.run === ticket.bansRun && !bans.isBannedSince(key, ticket.ban);
  }

  /** An entry as scripts store it; undefined when it is not to be stored. */
  replacement(key: string, entry: Entry, ticket: RedisTicket): Replacement | undefined {
    const lifeMs = Math.ceil(entry.deleteAt - this.#deps.now());
    if (ticket === undefined || lifeMs <= 0 || !this.accepts(key, ticket)) return undefined;
    const { run, bansRun, seq, ban } = ticket;
    return { run, seq, bytes: encodeEntry(key, entry, { run: bothRuns(run, bansRun), ban }), lifeMs };
  }

  /** Returns false if the entry was refused, undefined if Redis was not used or has not answered. */
  async set(key: string, entry: Entry, ticket: RedisTicket): Promise<boolean | undefined> {
    const { commands } = this.#deps;
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

/** In a cluster the bans may be on another master than the entry, so an entry depends on the runs of both. */
const bothRuns = (run: string, bansRun: string): string =>
  run === bansRun ? run : run.slice(0, RUN_LENGTH / 2) + bansRun.slice(0, RUN_LENGTH / 2);

const MISS: Lookup<RedisTicket> = { entry: undefined, from: 'redis', ticket: undefined };

/** Number of names that one SCAN visits. */
const SCAN_COUNT = 1000;
/** Maximum number of SCAN commands per master, because a shared database may hold many unrelated keys. */
const MAX_SCANS = 100;
const SCAN_TIMEOUT_MS = 2000;

/** Yields keys of entries, which may be unusable, such as those of an earlier server run. @throws Error when Redis fails */
async function* findKeys(
  commands: Pick<RedisCommands, 'keyPrefix' | 'masters' | 'attempt'>,
): AsyncGenerator<string> {
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
