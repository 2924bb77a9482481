// When the pool of workers is ready or held, when an exited worker is restarted, and when no worker accepts connections.

import { HoldWatch } from '../../observe/health.js';

/** How often workers report. */
export const REPORT_INTERVAL_MS = 400;
/** A worker that is silent for this long has a blocked event loop. */
const SILENT_MS = 5000;

const UPSTREAM = 'upstream';
/** A worker that has not reported yet. */
const STARTING: readonly string[] = ['listener', UPSTREAM];
const SILENT: readonly string[] = ['event loop'];

/**
 * Ready when every worker is, so that none of them lacks what the others have; from then on as long as one worker is:
 * slow workers accept fewer connections anyway.
 */
export class PoolReadiness {
  readonly #limitMs: number;
  readonly #reports = new Map<number, { notReady: readonly string[]; at: number; watch: HoldWatch }>();
  #hasUpstream = false;
  #wasReady = false;

  constructor({ maxEventLoopDelayMs }: { maxEventLoopDelayMs: number }) {
    this.#limitMs = maxEventLoopDelayMs;
  }

  /** `notReady`: the failed checks of the worker. */
  report(worker: number, notReady: readonly string[], now: number): void {
    const limits = { everyMs: REPORT_INTERVAL_MS, limitMs: this.#limitMs, now };
    const watch = this.#reports.get(worker)?.watch ?? new HoldWatch(limits);
    watch.beat(now);
    this.#reports.set(worker, { notReady, at: now, watch });
    // What one worker can answer with, the others get too: an upstream that answers, or an entry in Redis.
    this.#hasUpstream ||= !notReady.includes(UPSTREAM);
  }

  started(worker: number, now: number): void {
    this.report(worker, STARTING, now);
  }

  remove(worker: number): void {
    this.#reports.delete(worker);
  }

  /** The primary has an answer of the upstream: the workers need none of their own. */
  upstreamAnswered(): void {
    this.#hasUpstream = true;
  }

  /** The failed checks; none when the pool is ready. */
  notReady(now: number): string[] {
    const workers = [...this.#reports.values()].map((report) => this.#failedChecks(report, now));
    const ready = workers.filter((failed) => failed.length === 0).length;
    const isReady = this.#wasReady ? ready > 0 : ready === workers.length;
    if (!isReady) return [...new Set(workers.flat())];
    this.#wasReady ||= ready > 0;
    return [];
  }

  /** For how long a worker has stood still, now or a moment ago. */
  heldMs(now: number): number | undefined {
    const held = [...this.#reports.values()].map(({ watch }) => watch.heldMs(now) ?? 0);
    return Math.max(0, ...held) || undefined;
  }

  #failedChecks(
    { notReady, at }: { notReady: readonly string[]; at: number },
    now: number,
  ): readonly string[] {
    if (this.#limitMs > 0 && now - at >= SILENT_MS) return SILENT;
    return this.#hasUpstream ? notReady.filter((name) => name !== UPSTREAM) : notReady;
  }
}

const FIRST_DELAY_MS = 500;
/** It may be the only worker: until then no request is answered. */
const MAX_DELAY_MS = 10_000;
/** A worker that ran this long was not in a crash loop: the backoff starts again. */
const STABLE_AFTER_MS = 10_000;

/** Exponential backoff of one place in the pool. */
export class RestartBackoff {
  #nextMs = FIRST_DELAY_MS;

  /** @returns the delay before the next start (ms) */
  delayMs(servedMs: number): number {
    const delayMs = servedMs >= STABLE_AFTER_MS ? FIRST_DELAY_MS : this.#nextMs;
    this.#nextMs = Math.min(2 * delayMs, MAX_DELAY_MS);
    return delayMs;
  }
}

/** Stopping workers hold new connections (server/drain.ts) until every listener is closed. */
export class ListenerBarrier {
  readonly #open = new Set<number>();
  readonly #waiting = new Set<number>();

  /** The worker is about to close its listener. */
  expect(worker: number): void {
    this.#open.add(worker);
  }

  /** The worker has closed its listener or has exited. @returns the workers that wait no longer */
  closed(worker: number): number[] {
    if (!this.#open.delete(worker) && this.#open.size === 0) return [worker];
    this.#waiting.add(worker);
    if (this.#open.size > 0) return [];
    const released = [...this.#waiting];
    this.#waiting.clear();
    return released;
  }
}
