// Limits answers on UDP by network, as DNS servers do (response rate limiting): a request may have a forged sender.

/** Of the requests above the limit every second one is answered with code 2: an honest client then asks by TCP. */
const SLIP = 2;

/** More networks in one second share one count. */
const MAX_NETWORKS = 65_536;

export type Verdict = 'answer' | 'slip' | 'drop';

/** Counts by second. */
export class AnswerLimit {
  readonly #perSecond: number;
  #counts = new Map<string, number>();
  #second = 0;

  /** `perSecond` 0: no limit. */
  constructor(perSecond: number) {
    this.#perSecond = perSecond;
  }

  judge(network: string, now: number): Verdict {
    if (this.#perSecond === 0) return 'answer';
    const second = Math.floor(now / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#counts = new Map();
    }
    const name = this.#counts.size < MAX_NETWORKS || this.#counts.has(network) ? network : '';
    const count = (this.#counts.get(name) ?? 0) + 1;
    this.#counts.set(name, count);
    const over = count - this.#perSecond;
    if (over <= 0) return 'answer';
    return over % SLIP === 1 ? 'slip' : 'drop';
  }
}
