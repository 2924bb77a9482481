// Logs all writes, and determines which versions a reader may see.

/** A change to a handle. Changes are numbered and do not overlap. */
interface Change {
  isGone: boolean;
  startedAt: number;
  /** Time of the acknowledgement (ms); undefined if the outcome is unknown. */
  acknowledgedAt?: number;
  /** The proxy life that forwarded the change. */
  by: string;
  /**
   * Whether the message to other proxies was lost, so that they may serve their entry until its TTL expires.
   */
  isMessageLost?: boolean;
}

export interface Shown {
  handle: string;
  /** The number in the record; undefined for 404. */
  number: number | undefined;
  askedAt: number;
  by: string;
  isMarkedStale: boolean;
}

export interface LedgerOptions {
  /** Whether no proxy may serve an older record as fresh, also while messages are lost. */
  isStrict: boolean;
  /** Maximum time (ms) for which an old record may count as fresh while messages are lost. */
  boundMs: number;
  /** Time (ms) after a write of unknown outcome during which no entry is stored. */
  fenceMs: number;
  /** Whether messages between proxies may have been lost or late within the period. */
  wasRedisTroubled: (fromMs: number, toMs: number) => boolean;
  /**
   * Whether a proxy was frozen within the period, and so may have read a request before an earlier message.
   */
  wasFrozen: (fromMs: number, toMs: number) => boolean;
}

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
      if (this.#options.wasRedisTroubled(acknowledgedAt, now)) change.isMessageLost = true;
    }
  }

  /** Returns the number of changes to a handle, each of which may invalidate entries. */
  size(handle: string): number {
    return this.#changes.get(handle)?.length ?? 0;
  }

  /** Whether every proxy has received all changes, so that the handle's entries now stay cached. */
  isSettled(handle: string, now: number): boolean {
    const { boundMs, fenceMs, wasRedisTroubled } = this.#options;
    return (this.#changes.get(handle) ?? []).every(({ startedAt, acknowledgedAt }) => {
      if (now > startedAt + fenceMs) return !wasRedisTroubled(now, now);
      if (acknowledgedAt === undefined) return false;
      return now > acknowledgedAt + boundMs && !wasRedisTroubled(acknowledgedAt, now);
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
    if (by === shown.by || (this.#options.isStrict && !shown.isMarkedStale)) return true;
    return this.#mustHaveMessage({ ...change, acknowledgedAt }, shown);
  }

  #mustHaveMessage(change: Change & { acknowledgedAt: number }, { askedAt, isMarkedStale }: Shown): boolean {
    const { acknowledgedAt, startedAt } = change;
    const { boundMs, wasRedisTroubled, wasFrozen } = this.#options;
    // A proxy without the message may also serve its record stale while the upstream fails.
    if (!wasRedisTroubled(startedAt, askedAt)) return !isMarkedStale || !wasFrozen(startedAt, askedAt);
    if (change.isMessageLost || askedAt < acknowledgedAt + boundMs) return false;
    return !isMarkedStale || !wasRedisTroubled(acknowledgedAt, acknowledgedAt);
  }
}
