// The Redis tier: entries that all instances share, and the marks that say what was written when.
import { randomUUID } from 'node:crypto';
import { type Debt, Debts } from './debts.js';
import { type Entry, decodeEntry, encodeEntry, sweepOf } from './entry.js';
import { EPOCH_LINE, type KeyMessage, isInvalidation, writeMessage } from './message.js';
import { redisName } from './redis-keys.js';
import type { RedisLink } from './redis-link.js';
import * as scripts from './redis-scripts.js';
import { RedisSweeps, type SweepLink, type SweepMessage } from './redis-sweeps.js';
import type { Fence, Looked, Store } from './store.js';
import type { Sweep } from './sweeps.js';

/**
 * The id of the mark that stood on the key when the load began, '' for none, the epoch, and the newest sweep;
 * undefined when Redis could not be asked. An undefined ticket is never good.
 */
export type RedisTicket = { mark: string; epoch: number; sweep: number; isFenced: boolean } | undefined;

export interface RedisStoreOptions {
  /** Longer than any load or write can take (ms): as long does a mark stay. */
  markLifeMs: number;
  /** How long a write may keep a key from being stored when nobody says how it ended (ms). */
  fenceLifeMs: number;
  now: () => number;
  /** Most keys that are owed one by one. */
  mostDebts?: number;
  /** See RedisSweeps. */
  onMissedSweep?: (sweep: Sweep) => void;
}

export type StoreLink = SweepLink & Pick<RedisLink, 'everybodyHeard'>;

/** What a step is called in the metrics, its script, and what it tells the others. */
interface Step {
  name: string;
  script: string;
  message: KeyMessage;
  more?: (string | number | Buffer)[];
}

/** One at a time would take a second for some thousand keys. */
const SETTLED_AT_A_TIME = 200;

export class RedisStore implements Store<RedisTicket> {
  readonly #link: StoreLink;
  readonly #options: RedisStoreOptions;
  /** What was written or forgotten while Redis did not listen. */
  readonly #debts: Debts;
  /** Part of the names of entries: a new one makes all of them invisible, and they run out by themselves. */
  #epoch = 0;
  readonly #sweeps: RedisSweeps;

  constructor(link: StoreLink, options: RedisStoreOptions) {
    this.#link = link;
    this.#options = options;
    this.#debts = new Debts({ now: options.now, ...(options.mostDebts && { mostKeys: options.mostDebts }) });
    this.#sweeps = new RedisSweeps(link, options.onMissedSweep ?? (() => undefined));
  }

  async get(key: string): Promise<Looked<RedisTicket>> {
    const [entryName, markName] = this.#names(key);
    const epoch = this.#epoch;
    const { latest: sweep } = this.#sweeps.known;
    const reply = await this.#link.run('get', (redis) => redis.mgetBuffer(entryName, markName));
    if (reply === undefined) return { entry: undefined, ticket: undefined };
    const [entry, buffer] = reply;
    const mark = buffer?.toString() ?? '';
    return {
      entry: entry ? this.#decode(key, entry) : undefined,
      ticket: { mark: mark.slice(1), epoch, sweep, isFenced: mark.startsWith(scripts.FENCED) },
    };
  }

  #decode(key: string, buffer: Buffer): Entry | undefined {
    const entry = decodeEntry(key, buffer);
    return entry && this.#sweeps.known.apply(key, entry, sweepOf(buffer));
  }

  /** Undefined: Redis could not be asked, so nothing is known against the entry. */
  async set(key: string, entry: Entry, ticket: RedisTicket): Promise<boolean | undefined> {
    const lifeMs = Math.ceil(entry.deleteAt - this.#options.now());
    if (ticket === undefined || lifeMs <= 0) return undefined;
    if (!this.accepts(key, ticket)) return false;
    const stored = await this.#link.run('set', (redis) =>
      redis.eval(
        scripts.STORE,
        3,
        ...this.#names(key),
        ticket.mark,
        encodeEntry(key, entry, ticket.sweep),
        lifeMs,
      ),
    );
    return stored === undefined ? undefined : stored === 1;
  }

  accepts(key: string, ticket: RedisTicket): boolean {
    return ticket?.epoch === this.#epoch && !this.#sweeps.known.isSince(key, ticket.sweep);
  }

  async replace(key: string, entry: Entry, ticket: RedisTicket): Promise<boolean | undefined> {
    const lifeMs = Math.ceil(entry.deleteAt - this.#options.now());
    if (ticket !== undefined && this.#sweeps.known.isSince(key, ticket.sweep)) return false;
    const isGood = ticket?.epoch === this.#epoch && lifeMs > 0;
    const more = isGood ? [ticket.mark, encodeEntry(key, entry, ticket.sweep), lifeMs] : [];
    const step: Step = { name: 'set', script: scripts.REPLACE, message: { kind: 'forget', key }, more };
    const replaced = isGood ? await this.#link.run(step.name, () => this.#eval(step)) : undefined;
    // Where it cannot be kept, the others have to forget all the same.
    if (replaced === undefined) await this.#tell(forgetting(key));
    return replaced === undefined ? undefined : replaced === 1;
  }

  async forget(key: string): Promise<void> {
    await this.#tell(forgetting(key));
  }

  async soften(key: string): Promise<void> {
    await this.#tell({ name: 'soften', script: scripts.SOFTEN, message: { kind: 'soften', key } });
  }

  /** The number under which all instances know it; 0 when Redis could not be told yet. */
  sweep(sweep: Sweep): Promise<number> {
    return this.#sweeps.sweep(sweep);
  }

  /** What Redis could not be told the others hear when it is back. */
  heard(): Promise<void> {
    return this.#link.everybodyHeard();
  }

  /** Another instance swept; tells whether that is news. */
  enterSweep(message: SweepMessage): boolean {
    return this.#sweeps.enter(message);
  }

  /** From now on the entry lives no longer than the fence: a writer that is killed leaves nothing behind. */
  async fence(key: string): Promise<Fence> {
    const writer = randomUUID();
    const { fenceLifeMs: lifeMs } = this.#options;
    await this.#tell({
      name: 'fence',
      script: scripts.RAISE,
      message: { kind: 'raise', key, writer, lifeMs },
      more: [writer, lifeMs],
    });
    const until = this.#options.now() + lifeMs;
    const leftMs = (): number => Math.max(0, Math.ceil(until - this.#options.now()));
    const settle = (script: string, message: KeyMessage): Promise<void> =>
      this.#tell({ name: 'fence', script, message, more: [writer, this.#options.now()] });
    return {
      changed: async () => {
        await settle(scripts.LOWER_CHANGED, { kind: 'changed', key, writer });
        await this.heard();
      },
      unchanged: () => settle(scripts.LOWER_UNCHANGED, { kind: 'unchanged', key, writer }),
      // The fence was raised for longer than the write was waited for: it expires by itself.
      unknown: () => settle(scripts.SOFTEN_FENCED, { kind: 'unknown', key, writer, lifeMs: leftMs() }),
    };
  }

  /** Says what could not be said while Redis was away. To be done before Redis is read again. */
  async settleDebts(): Promise<void> {
    const owedAll = this.#debts.takeAll();
    await this.#agreeOnEpoch(owedAll ? 1 : 0).catch((error: unknown) => {
      if (owedAll) this.#debts.oweAll();
      throw error;
    });
    await this.#sweeps.settle();
    for (;;) {
      const debts = this.#debts.take(SETTLED_AT_A_TIME);
      if (debts.length === 0) return;
      const settled = await Promise.allSettled(debts.map(([key, debt]) => this.#settle(key, debt)));
      if (settled.some(({ status }) => status === 'rejected')) throw new Error('Redis could not be told');
    }
  }

  async #settle(key: string, debt: Debt): Promise<void> {
    try {
      await this.#eval(forgetting(key, debt));
    } catch (error) {
      this.#debts.owe(key, debt);
      this.#link.lose();
      throw error;
    }
  }

  /** What was told last may be lost with Redis: it is said again when Redis is back. */
  onLost(): void {
    this.#debts.oweRecent();
  }

  /** What Redis holds may be about another upstream: it is made invisible before it is read. */
  disown(): void {
    this.#debts.oweAll();
  }

  /** Another instance began an epoch; tells whether that is news. */
  enterEpoch(epoch: number): boolean {
    if (epoch <= this.#epoch) return false;
    this.#epoch = epoch;
    return true;
  }

  /** Sees to it that Redis knows epoch and sweeps: it may have been restarted, or have evicted it. */
  async keepEpoch(): Promise<void> {
    await this.#agreeOnEpoch(0);
    await this.#sweeps.keep();
    if (!this.#debts.isEmpty) this.#link.lose();
  }

  async #agreeOnEpoch(step: 0 | 1): Promise<void> {
    const [channel, line] = this.#link.announcement(EPOCH_LINE);
    const name = `${this.#link.keyPrefix}epoch`;
    const epoch = await this.#link.commands.eval(scripts.EPOCH, 1, name, this.#epoch, step, channel, line);
    this.enterEpoch(Number(epoch));
  }

  async #tell(step: Step): Promise<void> {
    const told = await this.#link.run(step.name, () => this.#eval(step));
    if (isInvalidation(step.message)) this.#debts[told === undefined ? 'owe' : 'told'](step.message.key);
    // It may answer reads all the same, and then it would answer with what is over.
    if (told === undefined) this.#link.lose();
  }

  #eval({ script, message, more = [] }: Step): Promise<unknown> {
    const announcement = this.#link.announcement(writeMessage(message));
    const mark = [randomUUID(), this.#options.markLifeMs];
    return this.#link.commands.eval(
      script,
      3,
      ...this.#names(message.key),
      ...mark,
      ...announcement,
      ...more,
    );
  }

  #names(key: string): [entry: string, mark: string, writers: string] {
    const name = (part: string): string => redisName(this.#link.keyPrefix, key, part);
    return [name(this.#epoch === 0 ? 'entry' : `entry:${this.#epoch}`), name('mark'), name('writers')];
  }
}

/** Redis forgets; what the others keep of it they forget too, or let it only stand in. */
const forgetting = (key: string, kind: Debt = 'forget'): Step => ({
  name: 'forget',
  script: scripts.FORGET,
  message: { kind, key },
});
