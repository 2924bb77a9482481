// The log of all writes, and which versions a reader may see.

/** One change of a handle. Changes are numbered and do not overlap. */
interface Change {
  isGone: boolean;
  startedAt: number;
  /** When the acknowledgement came (ms); undefined: the outcome is unknown. */
  acknowledgedAt?: number;
  /** The proxy and its life that forwarded the change. */
  by: string;
  /** Its message to the other proxies is lost: they may serve their entry until its TTL ends. */
  isMessageLost?: boolean;
}

export interface Shown {
  handle: string;
  /** The number in the record; undefined: not found. */
  number: number | undefined;
  askedAt: number;
  by: string;
  isMarkedStale: boolean;
}

export interface LedgerOptions {
  /** While messages are lost: maximum time an old record counts as fresh (ms). */
  boundMs: number;
  /** Time without stores after a write with an unknown outcome (ms). */
  fenceMs: number;
  /** Whether messages between proxies may have been lost or late within this span. */
  wasRedisTroubled: (fromMs: number, toMs: number) => boolean;
  /** Whether a proxy was frozen within this span, and may have read a request before a message. */
  wasFrozen: (fromMs: number, toMs: number) => boolean;
}

export class Ledger {
  readonly #changes = new Map<string, Change[]>();
  readonly #options: LedgerOptions;

  constructor(options: LedgerOptions) {
    this.#options = options;
  }

  /** The state before the run. */
  stands(handle: string, { isGone }: Pick<Change, 'isGone'>): void {
    this.#changes.set(handle, [{ isGone, startedAt: -Infinity, acknowledgedAt: -Infinity, by: '' }]);
  }

  /** Gives the number of the change. */
  begin(handle: string, change: Pick<Change, 'isGone' | 'startedAt' | 'by'>): number {
    const changes = this.#changes.get(handle) ?? [];
    return changes.push({ ...change }) - 1;
  }

  acknowledged(handle: string, number: number, at: number): void {
    this.#changes.get(handle)![number]!.acknowledgedAt = at;
  }

  /** This life of a proxy is over: its unsent messages are lost. */
  killed(by: string, now: number): void {
    for (const change of [...this.#changes.values()].flat()) {
      const { acknowledgedAt } = change;
      if (change.by !== by || acknowledgedAt === undefined) continue;
      if (this.#options.wasRedisTroubled(acknowledgedAt, now)) change.isMessageLost = true;
    }
  }

  /** Number of changes of this handle: a change may invalidate entries. */
  size(handle: string): number {
    return this.#changes.get(handle)?.length ?? 0;
  }

  /** Every proxy has received all changes: entries of the handle stay from now on. */
  isSettled(handle: string, now: number): boolean {
    const { boundMs, fenceMs, wasRedisTroubled } = this.#options;
    return (this.#changes.get(handle) ?? []).every(({ startedAt, acknowledgedAt }) => {
      if (now > startedAt + fenceMs) return !wasRedisTroubled(now, now);
      if (acknowledgedAt === undefined) return false;
      return now > acknowledgedAt + boundMs && !wasRedisTroubled(acknowledgedAt, now);
    });
  }

  /** The fault of an answer, if it has one. */
  fault(shown: Shown): string | undefined {
    const changes = this.#changes.get(shown.handle) ?? [];
    const number = shown.number ?? changes.findLastIndex(({ isGone }) => isGone);
    if (number === -1) return 'not found, though it was never deleted';
    if (changes[number] === undefined) return `shows ${number}, which nobody wrote`;
    if (shown.number !== undefined && changes[number].isGone) return `shows ${number}, which was a deletion`;
    const missed = changes.findLastIndex((change, at) => at > number && this.#mustBeSeen(change, shown));
    return missed === -1 ? undefined : `shows ${number}, though ${missed} was acknowledged`;
  }

  #mustBeSeen(change: Change, { askedAt, by, isMarkedStale }: Shown): boolean {
    const { acknowledgedAt, startedAt } = change;
    const { boundMs, wasRedisTroubled, wasFrozen } = this.#options;
    if (acknowledgedAt === undefined || askedAt < acknowledgedAt) return false;
    if (change.by === by) return true;
    // A proxy that has not received the message may serve its record stale while the upstream fails too.
    if (!wasRedisTroubled(startedAt, askedAt)) return !isMarkedStale || !wasFrozen(startedAt, askedAt);
    if (change.isMessageLost || askedAt < acknowledgedAt + boundMs) return false;
    return !isMarkedStale || !wasRedisTroubled(acknowledgedAt, acknowledgedAt);
  }
}
