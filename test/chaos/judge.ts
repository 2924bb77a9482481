// Judges every response: correct, stale within limits, for a different handle, private, or an avoidable
// failure.
import type { Asked } from '../support/ask.js';
import type { Ledger } from './ledger.js';
import { LONGEST_FREEZE_MS } from './plan.js';
import { CALM, SECRET, numberOf } from './records.js';
import type { ProxyLife } from './world.js';

export interface Figures {
  answers: number;
  fresh: number;
  stale: number;
  /** Responses from proxies with a usable entry; `failedOfKept` counts failures among them. */
  ofKept: number;
  failedOfKept: number;
  /** Responses from proxies that restored the entry from a snapshot, included in `ofKept`. */
  ofRestored: number;
  /** All 5xx responses, including those without an entry while the upstream was down. */
  failures: number;
  /** Connections broken because the proxy was killed. */
  broken: number;
  writes: number;
  writesOfUnknownEnd: number;
  /** Staleness audits with the result `equal`, counted by the proxies running at the end. */
  equalAudits: number;
  /** Gaps in the feed and in the deliveries of the webhook. */
  gaps: number;
  /** Changes that waited for Redis when their proxy was killed: the feed and the webhook lack them. */
  lostWithProxy: number;
  wrong: string[];
}

/** Age from which an entry is in the snapshot: the snapshot interval and slack for a busy machine, and a freeze. */
const IN_SNAPSHOT_AFTER_MS = 3000 + LONGEST_FREEZE_MS;

export interface Read {
  handle: string;
  life: ProxyLife;
  askedAt: number;
  sizeBefore: number;
}

export class Judge {
  readonly figures: Figures = {
    answers: 0,
    fresh: 0,
    stale: 0,
    ofKept: 0,
    failedOfKept: 0,
    ofRestored: 0,
    failures: 0,
    broken: 0,
    writes: 0,
    writesOfUnknownEnd: 0,
    equalAudits: 0,
    gaps: 0,
    lostWithProxy: 0,
    wrong: [],
  };
  readonly #ledger: Ledger;
  /** Number of changes at the last hit, by proxy life and handle name. */
  readonly #kept = new Map<string, number>();
  /** Time of the first hit on each handle that is never written, by proxy life and handle name. */
  readonly #since = new Map<string, number>();
  readonly #from = Date.now();

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /** Whether the proxy must still have the handle's entry. */
  #isKept({ handle, life, sizeBefore }: Read): boolean {
    return (
      this.#kept.get(`${life.name} ${handle}`) === sizeBefore && this.#ledger.size(handle) === sizeBefore
    );
  }

  /** Returns the time since which a proxy must have the handle's entry, derived from its snapshots. */
  #restoredSince({ before, restored }: ProxyLife, handle: string): number {
    if (before === undefined || restored === undefined) return Infinity;
    const known = this.#since.get(`${before.name} ${handle}`) ?? this.#restoredSince(before, handle);
    return known + IN_SNAPSHOT_AFTER_MS < restored.writtenAt ? restored.at : Infinity;
  }

  #isRestored({ handle, life, askedAt }: Read): boolean {
    return this.#restoredSince(life, handle) < askedAt;
  }

  answered(read: Read, answer: Asked): void {
    this.figures.answers++;
    if (this.#isKept(read) || this.#isRestored(read)) this.figures.ofKept++;
    if (this.#isRestored(read)) this.figures.ofRestored++;
    const report = (what: string): void => {
      const seconds = ((read.askedAt - this.#from) / 1000).toFixed(1);
      const seen = `${answer.status}, ${String(answer.headers['cache-status'])}`;
      this.figures.wrong.push(
        `${seconds} s, ${read.life.name}, ${read.handle}: ${what} (${seen}) ${answer.text.slice(0, 200)}`,
      );
    };
    if (answer.text.includes(SECRET)) report('a private value');
    if (answer.status >= 500) this.#failed(read, report);
    else if (answer.status === 200 || answer.status === 404) this.#shown(read, answer, report);
    else report('no answer to a read');
  }

  #shown(read: Read, answer: Asked, report: (what: string) => void): void {
    const { handle, life, askedAt } = read;
    const isMarkedStale = /detail=(error|timeout|backoff)/.test(String(answer.headers['cache-status']));
    this.figures[isMarkedStale ? 'stale' : 'fresh']++;
    const isFound = answer.status === 200;
    const number = isFound ? numberOf(handle, answer.text) : undefined;
    if (isFound && number === undefined) {
      report('not the record of this handle');
      return;
    }
    const fault = this.#ledger.fault({ handle, number, askedAt, by: life, isMarkedStale });
    if (fault !== undefined) report(fault);
    // Only a hit proves that the entry is cached: a load may have met a fence or a Redis that had just
    // reconnected. A 404 is not cached for long enough to rely on.
    const isHit = String(answer.headers['cache-status']).includes('; hit;');
    if (isFound && isHit && this.#ledger.isSettled(handle, askedAt)) this.#keep(read);
  }

  #keep({ handle, life, sizeBefore }: Read): void {
    const name = `${life.name} ${handle}`;
    this.#kept.set(name, sizeBefore);
    if (CALM.includes(handle) && !this.#since.has(name)) this.#since.set(name, Date.now());
  }

  #failed(read: Read, report: (what: string) => void): void {
    this.figures.failures++;
    if (!this.#isKept(read) && !this.#isRestored(read)) return;
    this.figures.failedOfKept++;
    report('a failure while there was an entry');
  }

  /** Records a request without a response. */
  broke({ handle, life, askedAt }: Read, error: unknown): void {
    if (!life.isAlive) this.figures.broken++;
    else {
      const code = (error as { code?: string }).code ?? String(error);
      const seconds = ((Date.now() - askedAt) / 1000).toFixed(1);
      this.figures.wrong.push(`${life.name}, ${handle}: no answer (${code}) after ${seconds} s`);
    }
  }
}
