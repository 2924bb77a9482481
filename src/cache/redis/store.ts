// The Redis tier: entries that all instances share, each with the server run and the bans it was loaded under.
import type { Bans } from '../coherence/bans.js';
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
import { bansName, groupNames } from './namespace.js';

/** Undefined: Redis could not be asked. */
export type RedisTicket = (LoadOrigin & { bansRun: string; seq: number; isFenced: boolean }) | undefined;

export interface RedisStoreDeps {
  commands: Pick<RedisCommands, 'run' | 'keyPrefix' | 'runOf' | 'script'>;
  /** Undefined while the bans of Redis have not been read. */
  bans: () => Bans | undefined;
  /** While changes are not received, or not reported yet, Redis may hold what is over. */
  isLinked: () => boolean;
  now: () => number;
}

export class RedisStore {
  readonly #deps: RedisStoreDeps;

  constructor(deps: RedisStoreDeps) {
    this.#deps = deps;
  }

  /** The entry first: a state that is read after it knows of every change that the entry does not contain. */
  async get(key: string): Promise<Lookup<RedisTicket>> {
    const { commands } = this.#deps;
    const bans = this.#bansInForce();
    if (bans === undefined) return NOTHING;
    const [entryName, stateName] = groupNames(commands.keyPrefix, key);
    const ban = bans.latest;
    const reply = await commands.run('get', (redis) =>
      // MGET takes what is no string for nothing.
      Promise.all([redis.mgetBuffer(entryName), redis.hmget(stateName, 'run', 'seq', `f:${key}`)]),
    );
    if (reply === undefined) return NOTHING;
    const [[buffer], [run = null, seq, fences]] = reply;
    // A server that was restarted, or has taken over, may hold what is over.
    const served = commands.runOf(stateName);
    if (run === null && served !== undefined) this.#openState(stateName, served);
    if (run === null || run !== served) return NOTHING;
    return {
      entry: buffer ? this.#decode(key, buffer, bothRuns(run, bans.run)) : undefined,
      ticket: { run, bansRun: bans.run, seq: Number(seq), ban, isFenced: fences !== null },
    };
  }

  /** Undefined: Redis is not to be read. Another server may have made bans that are not known yet. */
  #bansInForce(): Bans | undefined {
    const { commands, isLinked } = this.#deps;
    const bans = this.#deps.bans();
    return isLinked() && bans?.run === commands.runOf(bansName(commands.keyPrefix)) ? bans : undefined;
  }

  /** It was evicted or flushed: without it nothing of its group is stored. Nobody waits for it. */
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

  /** Undefined: Redis could not be asked, so nothing is known against the entry. */
  async set(key: string, entry: Entry, ticket: RedisTicket): Promise<boolean | undefined> {
    const { commands, now } = this.#deps;
    const lifeMs = Math.ceil(entry.deleteAt - now());
    if (ticket === undefined || lifeMs <= 0) return undefined;
    if (!this.accepts(key, ticket)) return false;
    const { run, bansRun, seq, ban } = ticket;
    const origin = { run: bothRuns(run, bansRun), ban };
    const args = [run, seq, key, encodeEntry(key, entry, origin), lifeMs];
    const stored = await commands.run('set', () =>
      commands.script(STORE, groupNames(commands.keyPrefix, key), args),
    );
    return stored === undefined ? undefined : stored === 1;
  }
}

/** In a cluster the bans may be on another master than the entry, and the number of the newest ban is of that one. */
const bothRuns = (run: string, bansRun: string): string =>
  run === bansRun ? run : run.slice(0, RUN_LENGTH / 2) + bansRun.slice(0, RUN_LENGTH / 2);

const NOTHING = { entry: undefined, ticket: undefined };
