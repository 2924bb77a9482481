// What happens now, for an operator who looks: the last minute second by second, what is asked for most, errors.
import { BUCKET_COUNT, bucketOf } from './latency.js';
import { type Ranked, TopList } from './top-list.js';

/** One second; `second` since the epoch. */
export interface Second {
  second: number;
  /** Requests by what became of them. */
  results: Record<string, number>;
  /** Counts by bucket, see latency.ts. */
  latency: number[];
}

export interface UpstreamSecond {
  second: number;
  upstream: number[];
  upstreamFailures: number;
}

export interface SeenError {
  /** ISO 8601. */
  at: string;
  message: string;
}

export interface ActivityReport {
  startedAt: number;
  /** Since the start. */
  results: Record<string, number>;
  upstream: { requests: number; failures: number };
  /** The last minute, oldest first; seconds in which nothing happened are left out. */
  seconds: Second[];
  upstreamSeconds: UpstreamSecond[];
  topHandles: Ranked[];
  topMisses: Ranked[];
  errors: SeenError[];
  /** State by server. */
  breakers: Record<string, string>;
}

export interface Activity {
  /** For the hot path: costs an increment. */
  hit: (handle: string) => void;
  answered: (request: { handle: string | undefined; result: string; ms: number }) => void;
  upstreamAnswered: (answer: { isFailure: boolean; ms: number }) => void;
  /** Anything but `open` lets questions through. */
  breakerIs: (state: string, server: string) => void;
  failed: (message: string) => void;
  report: () => ActivityReport;
  close: () => void;
}

const WINDOW_SECONDS = 60;
const MOST_ERRORS = 20;
const MOST_RANKED = 50;
const GATHER_MS = 1000;
/**
 * Of the hits of a second so many are told apart by handle, and of the rest each sixteenth, for sixteen: to write
 * down each of a hundred thousand handles costs a twentieth of an answer.
 */
const MOST_EXACT = 1000;
const SAMPLE = 16;

export function createActivity(now: () => number): Activity {
  const requests = createRequestTally(now);
  const others = createOtherTally(now);
  const startedAt = now();
  const timer = setInterval(requests.gather, GATHER_MS).unref();
  return {
    hit: requests.hit,
    answered: requests.answered,
    ...others.told,
    report() {
      requests.gather();
      return { startedAt, ...requests.report(), ...others.report() };
    },
    close() {
      clearInterval(timer);
    },
  };
}

function createRequestTally(now: () => number) {
  const seconds = new Seconds<Omit<Second, 'second'>>(now, () => ({ results: {}, latency: [] }));
  const results: Record<string, number> = {};
  const topHandles = new TopList(now);
  const topMisses = new TopList(now);
  let hits = 0;
  let sampled: string[] = [];

  function count(result: string, handle: string | undefined, times = 1): void {
    results[result] = (results[result] ?? 0) + times;
    const { results: ofSecond } = seconds.current();
    ofSecond[result] = (ofSecond[result] ?? 0) + times;
    if (handle === undefined) return;
    topHandles.add(handle, times);
    if (result === 'miss') topMisses.add(handle, times);
  }

  return {
    hit: (handle: string): void => {
      if (++hits <= MOST_EXACT || hits % SAMPLE === 0) sampled.push(handle);
    },
    answered: ({ handle, result, ms }: { handle: string | undefined; result: string; ms: number }): void => {
      count(result, handle);
      addTo(seconds.current().latency, bucketOf(ms));
    },
    gather: (): void => {
      if (hits === 0) return;
      count('hit', undefined, hits);
      addTo(seconds.current().latency, 0, hits);
      for (const [at, handle] of sampled.entries()) topHandles.add(handle, at < MOST_EXACT ? 1 : SAMPLE);
      hits = 0;
      sampled = [];
    },
    report: () => ({
      results: { ...results },
      seconds: seconds.last(),
      topHandles: topHandles.top(MOST_RANKED),
      topMisses: topMisses.top(MOST_RANKED),
    }),
  };
}

function createOtherTally(now: () => number) {
  const seconds = new Seconds<Omit<UpstreamSecond, 'second'>>(now, () => ({
    upstream: [],
    upstreamFailures: 0,
  }));
  const upstream = { requests: 0, failures: 0 };
  const errors: SeenError[] = [];
  const breakers: Record<string, string> = {};
  const told: Pick<Activity, 'upstreamAnswered' | 'breakerIs' | 'failed'> = {
    upstreamAnswered({ isFailure, ms }) {
      const second = seconds.current();
      upstream.requests++;
      if (isFailure) {
        upstream.failures++;
        second.upstreamFailures++;
      }
      addTo(second.upstream, bucketOf(ms));
    },
    breakerIs(state, server) {
      breakers[server] = state;
    },
    failed(message) {
      errors.push({ at: new Date(now()).toISOString(), message });
      if (errors.length > MOST_ERRORS) errors.shift();
    },
  };
  const report = () => ({
    upstream: { ...upstream },
    upstreamSeconds: seconds.last(),
    errors: [...errors],
    breakers: { ...breakers },
  });
  return { told, report };
}

/** The seconds of the last minute in which something happened. */
class Seconds<T extends object> {
  readonly #now: () => number;
  readonly #empty: () => T;
  #list: (T & { second: number })[] = [];

  constructor(now: () => number, empty: () => T) {
    this.#now = now;
    this.#empty = empty;
  }

  current(): T & { second: number } {
    const second = Math.floor(this.#now() / 1000);
    const last = this.#list.at(-1);
    if (last?.second === second) return last;
    const begun = { ...this.#empty(), second };
    this.#list = [...this.#list.filter(isRecent(second)), begun];
    return begun;
  }

  last(): (T & { second: number })[] {
    return this.#list.filter(isRecent(Math.floor(this.#now() / 1000)));
  }
}

const isRecent =
  (now: number) =>
  ({ second }: { second: number }): boolean =>
    second > now - WINDOW_SECONDS && second <= now;

function addTo(counts: number[], bucket: number, times = 1): void {
  if (counts.length === 0) counts.push(...new Array<number>(BUCKET_COUNT).fill(0));
  counts[bucket] = (counts[bucket] ?? 0) + times;
}
