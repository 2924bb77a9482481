// Logs all writes, and determines which versions a reader may see.

/** A change to a handle. Changes are numbered and do not overlap. */
interface Change {
  isGone: boolean;
  startedAt: number;
  /** Time of the acknowledgement (ms); undefined if the outcome is unknown. */
  acknowledgedAt?: number;
  /** The proxy life that forwarded the change. */
  by: string;
  /** Whether the proxy was killed before it could send the message to others. */
  isMessageLost?: boolean;
}

/** A proxy life that answers. `before`: the previous life of the same proxy, whose snapshot this life has restored. */
export interface Reader {
  name: string;
  before: Reader | undefined;
  killedAt?: number;
  /** Time since which other proxies wait for this life to acknowledge; undefined until it is connected to Redis. */
  joinedAt?: number;
}

export interface Shown {
  handle: string;
  /** The number in the record; undefined for 404. */
  number: number | undefined;
  askedAt: number;
  by: Reader;
  isMarkedStale: boolean;
}

export interface LedgerOptions {
  /** Whether no proxy may serve an older record as fresh, also while messages are lost. */
  isStrict: boolean;
  /** `redis.disconnectedMaxAge` (ms). */
  disconnectedMaxAgeMs: number;
  /** Returns the TTL (ms) of a handle's record. */
  ttlMsOf: (handle: string) => number;
  /** Time (ms) after an acknowledgement in which an entry may still be reloaded. */
  reloadedAfterMs: number;
  /** Time (ms) after a write of unknown outcome during which no entry is stored. */
  fenceMs: number;
  /** Whether messages between proxies may have been lost at any time in the period. */
  wasRedisTroubled: (fromMs: number, toMs: number) => boolean;
  /** Whether a single trouble of Redis covers the whole period. */
  wasRedisTroubledThroughout: (fromMs: number, toMs: number) => boolean;
  /**
   * Returns when the freeze ended in which a proxy life was at the given time, with the time in which it reads its
   * backlog; undefined if it was not frozen.
   */
  frozenUntil: (life: string, atMs: number) => number | undefined;
}

type Acknowledged = Change & { acknowledgedAt: number };

export class Ledger {
  readonly #changes = new Map<string, Change[]>();
  readonly #options: LedgerOptions;

  constructor(options: LedgerOptions) {
    this.#options = options;
  }

  /** Sets a handle's state before the run. */
  stands(handle: string, { isGone }: Pick<Change, 'isGone'>): void {
    this.#changes.set(handle, [{ isGone, startedAt: -Infinity, acknowledgedAt: -Infinity, by: '' }]);
  }

  /** Records the start of a change, and returns its number. */
  begin(handle: string, change: Pick<Change, 'isGone' | 'startedAt' | 'by'>): number {
    const changes = this.#changes.get(handle) ?? [];
    return changes.push({ ...change }) - 1;
  }

  acknowledged(handle: string, number: number, at: number): void {
    this.#changes.get(handle)![number]!.acknowledgedAt = at;
  }

  /** Ends a proxy life, whose unsent messages are lost. */
  killed(by: string, now: number): void {
    for (const change of [...this.#changes.values()].flat()) {
      const { acknowledgedAt } = change;
      if (change.by !== by || acknowledgedAt === undefined) continue;
      // The life reports its writes when Redis is back, so only a trouble that outlasts the life loses them.
      if (this.#options.wasRedisTroubledThroughout(acknowledgedAt, now)) change.isMessageLost = true;
    }
  }

  /** Returns the number of changes to a handle, each of which may invalidate entries. */
  size(handle: string): number {
    return this.#changes.get(handle)?.length ?? 0;
  }

  /** Whether every proxy has received all changes, so that the handle's entries now stay cached. */
  isSettled(handle: string, now: number): boolean {
    const { reloadedAfterMs, fenceMs, wasRedisTroubled } = this.#options;
    return (this.#changes.get(handle) ?? []).every(({ startedAt, acknowledgedAt }) => {
      if (now > startedAt + fenceMs) return !wasRedisTroubled(now, now);
      if (acknowledgedAt === undefined) return false;
      return now > acknowledgedAt + reloadedAfterMs && !wasRedisTroubled(acknowledgedAt, now);
    });
  }

  /** Describes the fault in a response; returns undefined for a correct response. */
  fault(shown: Shown): string | undefined {
    const changes = this.#changes.get(shown.handle) ?? [];
    const number = shown.number ?? changes.findLastIndex(({ isGone }) => isGone);
    if (number === -1) return 'not found, though it was never deleted';
    if (changes[number] === undefined) return `shows ${number}, which nobody wrote`;
    if (shown.number !== undefined && changes[number].isGone) return `shows ${number}, which was a deletion`;
    const missed = changes.findLastIndex((change, at) => at > number && this.#mustBeSeen(change, shown));
    return missed === -1 ? undefined : `shows ${number}, though ${missed} was acknowledged`;
  }

  #mustBeSeen(change: Change, shown: Shown): boolean {
    const { acknowledgedAt, by } = change;
    if (acknowledgedAt === undefined || shown.askedAt < acknowledgedAt) return false;
    // The writer applies its own change before the acknowledgement.
    if (by === shown.by.name) return true;
    const known = { ...change, acknowledgedAt };
    return shown.isMarkedStale ? !this.#mayBeStale(known, shown) : !this.#mayBeFresh(known, shown);
  }

  /** The exceptions of src/cache/coherence/README.md, "Exceptions", of which the strict mode has none. */
  #mayBeFresh(
    { acknowledgedAt, startedAt, isMessageLost }: Acknowledged,
    { handle, askedAt }: Shown,
  ): boolean {
    const { isStrict, disconnectedMaxAgeMs, ttlMsOf, wasRedisTroubled } = this.#options;
    if (isStrict) return false;
    // "Disconnected from Redis": the age counts from the load, which started before the acknowledgement. A trouble
    // that begins after the acknowledgement is no excuse: by then every proxy with a lease has the message.
    if (wasRedisTroubled(startedAt, acknowledgedAt) && askedAt < acknowledgedAt + disconnectedMaxAgeMs)
      return true;
    // "An instance acknowledged writes without Redis, and was killed before it reported them": until the TTL ends.
    return isMessageLost === true && askedAt < acknowledgedAt + ttlMsOf(handle);
  }

  /** Whether the message of a change may have missed the proxy. A record that is marked stale has no time limit. */
  #mayBeStale({ acknowledgedAt, startedAt }: Acknowledged, { askedAt, by }: Shown): boolean {
    const { wasRedisTroubled, frozenUntil } = this.#options;
    // A proxy without a lease gets no message. When it returns, it makes the entries of the changed groups stale, and
    // deletes none (src/cache/coherence/README.md, "Return after a loss").
    if (wasRedisTroubled(startedAt, acknowledgedAt)) return true;
    // While this proxy was down, others may have written: "a record of the snapshot is served stale, like any record
    // of an instance that is cut off from Redis" (config/examples/outages.md, "Long outages").
    if (wasAway(by, acknowledgedAt)) return true;
    // A frozen proxy loses its lease, and may read a request before the message (same page, "Lease"). If Redis fails
    // before the proxy has read the message, the message is lost with the connection.
    const thawedAt = frozenUntil(by.name, acknowledgedAt);
    return thawedAt !== undefined && (askedAt < thawedAt || wasRedisTroubled(acknowledgedAt, thawedAt));
  }
}

/**
 * Whether a proxy was down or had not joined yet. Earlier downtimes count too: a record that was restored after one,
 * and has not been reloaded, is in the next snapshot.
 */
function wasAway({ before, joinedAt = Infinity }: Reader, at: number): boolean {
  if (before?.killedAt === undefined) return false;
  return (before.killedAt <= at && at <= joinedAt) || wasAway(before, at);
}
