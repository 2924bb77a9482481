// A bounded queue that delivers lines in order and retries after a failure.
import { untilDeadline } from '../../cache/clock.js';

/** Delivers a batch of lines. @throws any error; the batch is then retried */
type DeliverLines = (lines: readonly string[]) => Promise<void>;

/** Reports what happens to the lines of a destination. */
export interface DeliveryReports {
  /** Formats the line that replaces dropped lines. */
  formatGap: (dropped: number) => string;
  onDropped: (count: number) => void;
  /** Called with the first of consecutive failures. */
  onFailing: (error: unknown) => void;
  /** Called with the first delivery after them, and the number of lines dropped meanwhile. */
  onRecovered: (dropped: number) => void;
}

const MAX_QUEUED = 10_000;
/** A line has some 300 characters; names and invented logins make some of them longer. */
const MAX_QUEUED_CHARS = 8 * 1024 * 1024;
const BATCH = 100;
const RETRY_MS = 500;
/** Maximum time that a write waits for its line to be delivered. */
const WAIT_MS = 500;

export class DeliveryQueue {
  readonly #deliver: DeliverLines;
  readonly #reports: DeliveryReports;
  #queued: string[] = [];
  #queuedChars = 0;
  #inFlight: string[] = [];
  /** Number of dropped lines that have not yet been reported in a gap line. */
  #dropped = 0;
  /** Number of lines added since the start, and how many of them have been delivered or dropped. */
  #added = 0;
  #done = 0;
  readonly #waiting: { end: number; resolve: () => void }[] = [];
  #retry: NodeJS.Timeout | undefined;
  #isFailing = false;

  constructor(deliver: DeliverLines, reports: DeliveryReports) {
    this.#deliver = deliver;
    this.#reports = reports;
  }

  get length(): number {
    return this.#queued.length + this.#inFlight.length;
  }

  /** Adds lines. Resolves once they are delivered, after a failure, or after 500 ms. */
  async add(lines: readonly string[]): Promise<void> {
    this.#queued.push(...lines);
    this.#queuedChars += lineChars(lines);
    this.#added += lines.length;
    this.#dropOldest();
    if (this.#isFailing) return;
    await this.#delivered();
  }

  /** Attempts a last delivery of the queued lines. */
  async close(): Promise<void> {
    // A batch in flight may fail, and is then not the last attempt.
    if (this.#inFlight.length > 0) await this.#delivered();
    this.#cancelRetry();
    if (this.#inFlight.length === 0) await this.#delivered();
    this.#cancelRetry();
  }

  #cancelRetry(): void {
    clearTimeout(this.#retry);
    this.#retry = undefined;
  }

  #delivered(): Promise<void> {
    const end = this.#added;
    if (this.#done >= end) return Promise.resolve();
    const delivered = new Promise<void>((resolve) => this.#waiting.push({ end, resolve }));
    void this.#run();
    const late = (): Error => new Error('no response');
    return untilDeadline(delivered, WAIT_MS, late).catch((error: unknown) => {
      this.#fail(error);
    });
  }

  #dropOldest(): void {
    let excess = Math.max(0, this.#queued.length - MAX_QUEUED);
    let chars = this.#queuedChars - lineChars(this.#queued.slice(0, excess));
    while (chars > MAX_QUEUED_CHARS) chars -= this.#queued[excess++]?.length ?? 0;
    if (excess === 0) return;
    this.#queued.splice(0, excess);
    this.#queuedChars = chars;
    this.#dropped += excess;
    this.#done += excess;
    this.#reports.onDropped(excess);
  }

  /** Delivers one batch at a time until the queue is empty or a batch fails. */
  async #run(): Promise<void> {
    if (this.#inFlight.length > 0 || this.#retry !== undefined) return;
    while (this.#queued.length > 0) {
      this.#inFlight = this.#queued.splice(0, BATCH);
      this.#queuedChars -= lineChars(this.#inFlight);
      const dropped = this.#dropped;
      const gap = dropped > 0 ? [this.#reports.formatGap(dropped)] : [];
      try {
        await this.#deliver([...gap, ...this.#inFlight]);
      } catch (error) {
        this.#requeue(error);
        return;
      }
      this.#dropped -= dropped;
      this.#done += this.#inFlight.length;
      this.#inFlight = [];
      this.#recover(dropped);
      this.#wake(this.#done);
    }
  }

  #requeue(error: unknown): void {
    this.#queued = this.#inFlight.concat(this.#queued);
    this.#queuedChars += lineChars(this.#inFlight);
    this.#inFlight = [];
    this.#dropOldest();
    this.#fail(error);
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      void this.#run();
    }, RETRY_MS).unref();
    this.#wake(Infinity);
  }

  /** Marks the destination as failing, so that later writes do not wait for it. */
  #fail(error: unknown): void {
    if (!this.#isFailing) this.#reports.onFailing(error);
    this.#isFailing = true;
  }

  #recover(dropped: number): void {
    if (this.#isFailing) this.#reports.onRecovered(dropped);
    this.#isFailing = false;
  }

  /** Resolves all waiters up to line number `done`. Waiters are sorted by line number. */
  #wake(done: number): void {
    const count = this.#waiting.findIndex(({ end }) => end > done);
    for (const { resolve } of this.#waiting.splice(0, count < 0 ? Infinity : count)) resolve();
  }
}

const lineChars = (lines: readonly string[]): number => lines.reduce((sum, { length }) => sum + length, 0);
