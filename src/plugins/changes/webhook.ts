// Posts the changes of the feed in signed batches (Standard Webhooks), each until the response is 2xx.
import { createHmac } from 'node:crypto';
import { type Clock, backoffMs, untilDeadline, waitAtMost } from '../../clock.js';
import { SerialFlight } from '../../resolver/single-flight.js';
import { createSender } from '../../upstream/connections.js';
import { type ChangeLog, type LogEntry, countExcess, lineChars } from './change-log.js';
import type { ChangesConfig } from './plugin.js';

/** Shorter than the reader lease (`READER_MS`), so that an instance does not post after losing it. */
const TIMEOUT_MS = 5000;
const POLL_MS = 500;
const CLOSE_MS = 1000;
/** Express accepts JSON of 100 KB, nginx bodies of 1 MiB. A receiver that refuses a body would never get a later change. */
const MAX_BODY_BYTES = 64 * 1024;

/** With Redis, one instance posts for all. What left the feed before is reported as dropped. */
export function createWebhook(
  { url = '', secret = '' }: ChangesConfig['changes']['webhook'],
  feed: ChangeLog,
  clock: Clock,
  { onDropped, onFailing, onRecovered }: DeliveryCallbacks,
  outgoing = createSender(),
) {
  const owner = clock.randomId();
  const pauses = createPauses(clock);
  let failures = 0;

  /** Posts the next batch after `cursor`. @returns the last posted id; undefined if nothing was posted */
  async function postAfter(cursor: string): Promise<string | undefined> {
    const batch = await feed.read(cursor);
    if (batch === undefined || batch.entries.length === 0) return undefined;
    const posted = fitInBody(batch.entries);
    try {
      const request = signedPost(posted, secret, clock.wall());
      const { ok, status } = await outgoing.send(url, request, TIMEOUT_MS);
      if (!ok) throw new Error(`the webhook responded with ${status}`);
    } catch (error) {
      failures++;
      onFailing(error);
      return undefined;
    }
    if (failures > 0) onRecovered(batch.missed);
    failures = 0;
    if (batch.missed > 0) onDropped(batch.missed);
    return posted.at(-1)?.id;
  }

  async function run(): Promise<void> {
    /** The last id of the batch that the next claim acknowledges. */
    let posted: string | undefined;
    let retryAt = 0;
    for (;;) {
      // An attempt that began before the end is not the last one: it may fail.
      const isLast = pauses.areOver();
      const cursor = await feed.claimReader(owner, posted);
      const isDue = isLast || clock.monotonic() >= retryAt;
      if (cursor !== undefined) {
        posted = isDue ? await postAfter(cursor) : undefined;
        if (posted !== undefined) continue;
      }
      if (isLast) return;
      if (isDue && failures > 0) retryAt = clock.monotonic() + backoffMs(failures);
      await pauses.wait();
    }
  }

  const running = run();
  return {
    /** Attempts to post the remaining changes within a second. */
    async close(): Promise<void> {
      pauses.end();
      await waitAtMost(running, CLOSE_MS, clock);
      await outgoing.close();
    },
  };
}

/** The pauses between attempts, which are over at the end. */
function createPauses({ after }: Clock) {
  let isOver = false;
  let endPause = (): void => undefined;
  return {
    areOver: () => isOver,
    wait: () =>
      new Promise<void>((resolve) => {
        endPause = resolve;
        if (isOver) resolve();
        else after(POLL_MS, resolve);
      }),
    end() {
      isOver = true;
      endPause();
    },
  };
}

/** Returns the first entries, at least one, that do not exceed the maximum together. */
function fitInBody(entries: readonly LogEntry[]): readonly LogEntry[] {
  let bytes = 0;
  const end = entries.findIndex(
    ({ line }, at) => (bytes += Buffer.byteLength(line)) > MAX_BODY_BYTES && at > 0,
  );
  return end === -1 ? entries : entries.slice(0, end);
}

/** Creates the POST of a batch, signed with HMAC-SHA256 (Standard Webhooks 1.0.0). `secret`: Base64. */
function signedPost(entries: readonly LogEntry[], secret: string, now: number) {
  const body = `{"changes":[${entries.map(({ line }) => line).join(',')}]}`;
  const id = entries.at(-1)?.id ?? '';
  const timestamp = String(Math.floor(now / 1000));
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  const headers = {
    'Content-Type': 'application/json',
    'Webhook-Id': id,
    'Webhook-Timestamp': timestamp,
    'Webhook-Signature': `v1,${signature}`,
  };
  return { method: 'POST', headers, body };
}

// A bounded queue that delivers lines in order and retries after a failure.

export interface DeliveryCallbacks {
  formatGap: (dropped: number) => string;
  onDropped: (count: number) => void;
  onFailing: (error: unknown) => void;
  /** Called with the first delivery after failures, and the number of lines dropped meanwhile. */
  onRecovered: (dropped: number) => void;
}

/** A line has some 300 characters; names and invented logins make some of them longer. */
const QUEUE_BOUNDS = { maxEntries: 10_000, maxChars: 8 * 1024 * 1024 };
const BATCH = 100;
const RETRY_MS = 500;
const WAIT_MS = 500;

export class DeliveryQueue {
  #queued: string[] = [];
  #queuedChars = 0;
  #inFlight: string[] = [];
  /** Number of dropped lines that have not yet been reported in a gap line. */
  #dropped = 0;
  readonly #runs = new SerialFlight();
  #cancelRetry: () => void = () => undefined;
  #isFailing = false;

  /** `deliver`: delivers a batch; after an error, the batch is retried. */
  constructor(
    private readonly deliver: (lines: readonly string[]) => Promise<void>,
    private readonly callbacks: DeliveryCallbacks,
    private readonly clock: { after: Clock['after'] },
  ) {}

  get length(): number {
    return this.#queued.length + this.#inFlight.length;
  }

  /** Adds lines. Resolves once they are delivered, after a failure, or after 500 ms. */
  async add(lines: readonly string[]): Promise<void> {
    this.#queued.push(...lines);
    this.#queuedChars += lineChars(lines);
    this.#dropOldest();
    if (!this.#isFailing) await this.#attempt();
  }

  /** Attempts a last delivery, after any delivery under way. */
  async close(): Promise<void> {
    await this.#attempt();
    this.#cancelRetry();
  }

  #attempt(): Promise<void> {
    const delivered = this.#runs.join('', () => this.#run());
    const late = (): Error => new Error('no response');
    return untilDeadline(delivered, WAIT_MS, late, this.clock).catch((error: unknown) => this.#fail(error));
  }

  #dropOldest(): void {
    const excess = countExcess(this.#queued, this.#queuedChars, QUEUE_BOUNDS);
    if (excess === 0) return;
    this.#queuedChars -= lineChars(this.#queued.splice(0, excess));
    this.#dropped += excess;
    this.callbacks.onDropped(excess);
  }

  /** Delivers the lines that are queued, but not those added meanwhile, or the wait for it may not end. */
  async #run(): Promise<void> {
    this.#cancelRetry();
    let left = this.#queued.length;
    while (left > 0 && this.#queued.length > 0) {
      this.#inFlight = this.#queued.splice(0, BATCH);
      this.#queuedChars -= lineChars(this.#inFlight);
      const dropped = this.#dropped;
      const gap = dropped > 0 ? [this.callbacks.formatGap(dropped)] : [];
      try {
        await this.deliver([...gap, ...this.#inFlight]);
      } catch (error) {
        this.#requeue(error);
        return;
      }
      this.#dropped -= dropped;
      this.#inFlight = [];
      left -= BATCH;
      if (!this.#isFailing) continue;
      this.callbacks.onRecovered(dropped);
      this.#isFailing = false;
      // Lines added since the failure wait for no delivery.
      left = this.#queued.length;
    }
  }

  #requeue(error: unknown): void {
    this.#queued = this.#inFlight.concat(this.#queued);
    this.#queuedChars += lineChars(this.#inFlight);
    this.#inFlight = [];
    this.#dropOldest();
    this.#fail(error);
    const retry = (): void => void this.#runs.join('', () => this.#run());
    this.#cancelRetry = this.clock.after(RETRY_MS, retry);
  }

  /** Marks the destination as failing, so that later writes do not wait for it. */
  #fail(error: unknown): void {
    this.callbacks.onFailing(error);
    this.#isFailing = true;
  }
}
