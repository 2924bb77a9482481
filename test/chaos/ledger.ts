// What was written when, and so what a reader may be shown.

/** One change of a handle; they are numbered, and the next is begun when the last has ended. */
interface Change {
  isGone: boolean;
  begunAt: number;
  /** When the acknowledgement came (ms); undefined when nobody knows how it ended. */
  acknowledgedAt?: number;
  /** Which life of which proxy carried it. */
  by: string;
  /** Its message to the other proxies is lost: they may go on until their entry has run out. */
  isUnheard?: boolean;
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
  /** While messages are lost: how long a proxy may show an old record as fresh. */
  boundMs: number;
  /** How long nothing of a handle is kept after a write of which nobody knows the end (ms). */
  fenceMs: number;
  /** Whether messages between proxies may have been lost or late at some time between these two. */
  wasRedisTroubled: (fromMs: number, toMs: number) => boolean;
  /** Whether a proxy stood still at some time between these two, and may have read a question before a message. */
  wasFrozen: (fromMs: number, toMs: number) => boolean;
}

export class Ledger {
  readonly #changes = new Map<string, Change[]>();
  readonly #options: LedgerOptions;

  constructor(options: LedgerOptions) {
    this.#options = options;
  }

  /** How it stands before the run begins. */
  stands(handle: string, { isGone }: Pick<Change, 'isGone'>): void {
    this.#changes.set(handle, [{ isGone, begunAt: -Infinity, acknowledgedAt: -Infinity, by: '' }]);
  }

  /** Gives the number of the change. */
  begin(handle: string, change: Pick<Change, 'isGone' | 'begunAt' | 'by'>): number {
    const changes = this.#changes.get(handle) ?? [];
    return changes.push({ ...change }) - 1;
  }

  acknowledged(handle: string, number: number, at: number): void {
    this.#changes.get(handle)![number]!.acknowledgedAt = at;
  }

  /** This life of a proxy is over; what it still had to tell nobody will hear. */
  killed(by: string, now: number): void {
    for (const change of [...this.#changes.values()].flat()) {
      const { acknowledgedAt } = change;
      if (change.by !== by || acknowledgedAt === undefined) continue;
      if (this.#options.wasRedisTroubled(acknowledgedAt, now)) change.isUnheard = true;
    }
  }

  /** Changes of this handle so far: when it grows, what is kept may be dropped. */
  size(handle: string): number {
    return this.#changes.get(handle)?.length ?? 0;
  }

  /** Every proxy has heard of all changes, and they may keep the handle: nothing of it is forgotten any more. */
  isSettled(handle: string, now: number): boolean {
    const { boundMs, fenceMs, wasRedisTroubled } = this.#options;
    return (this.#changes.get(handle) ?? []).every(({ begunAt, acknowledgedAt }) => {
      if (now > begunAt + fenceMs) return !wasRedisTroubled(now, now);
      if (acknowledgedAt === undefined) return false;
      return now > acknowledgedAt + boundMs && !wasRedisTroubled(acknowledgedAt, now);
    });
  }

  /** Says what is wrong with an answer, if anything is. */
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
    const { acknowledgedAt, begunAt } = change;
    const { boundMs, wasRedisTroubled, wasFrozen } = this.#options;
    if (acknowledgedAt === undefined || askedAt < acknowledgedAt) return false;
    if (change.by === by) return true;
    // A proxy that has not heard of the write may let its record stand in while the upstream fails too.
    if (!wasRedisTroubled(begunAt, askedAt)) return !isMarkedStale || !wasFrozen(begunAt, askedAt);
    if (change.isUnheard || askedAt < acknowledgedAt + boundMs) return false;
    return !isMarkedStale || !wasRedisTroubled(acknowledgedAt, acknowledgedAt);
  }
}
