// Activity for `/stats` and the status page: the last minute by second, top handles, recent errors.
import { BUCKET_COUNT, bucketOf } from './latency.js';
import { type Ranked, TopList } from './top-list.js';

/** The requests of one second; `second` since the epoch. */
export interface Second {
  second: number;
  /** Requests by result. */
  results: Record<string, number>;
  /** Histogram, see latency.ts. */
  latency: number[];
}

export interface UpstreamSecond {
  second: number;
  upstream: number[];
  upstreamFailures: number;
}

export interface RecentError {
  /** ISO 8601. */
  at: string;
  message: string;
}

export interface ActivityReport {
  startedAt: number;
  /** Since the start. */
  results: Record<string, number>;
  /** Since the start, by interface. */
  families: Record<string, number>;
  upstream: { requests: number; failures: number };
  /** The last minute, oldest first, without idle seconds. */
  seconds: Second[];
  upstreamSeconds: UpstreamSecond[];
  topHandles: Ranked[];
  topMisses: Ranked[];
  errors: RecentError[];
  /** Circuit breaker state by server. */
  breakers: Record<string, string>;
  servers: Record<string, ServerState>;
}

/** Whether a server works, by its last requests; of one that fails with the error's code, cause and remedy. */
export interface ServerState {
  state: 'unknown' | 'working' | 'failing';
  code?: string;
  cause?: string;
  remedy?: string | undefined;
}

interface CountedRequest {
  /** The interface. */
  family: string;
  handle: string | undefined;
  result: string;
  ms: number;
}

export interface Activity {
  /** Counts a cache hit; costs an increment. */
  countHit: (handle: string, family: string) => void;
  countRequest: (request: CountedRequest) => void;
  countUpstreamRequest: (answer: { isFailure: boolean; ms: number }) => void;
  setBreakerState: (state: string, server: string) => void;
  setServerState: (server: string, state: ServerState) => void;
  addError: (message: string) => void;
  report: () => ActivityReport;
  close: () => void;
}

const WINDOW_SECONDS = 60;
const MAX_ERRORS = 20;
const MAX_RANKED = 20;
const FLUSH_MS = 1000;
/** Hits are tracked by handle exactly for the first 1,000 per second, then 1 in 16, weighted 16. */
const MAX_EXACT = 1000;
const SAMPLE = 16;

export function createActivity(now: () => number): Activity {
  const requests = createRequestTally(now);
  const upstream = createUpstreamTally(now);
  const startedAt = now();
  const timer = setInterval(requests.flush, FLUSH_MS).unref();
  return {
    countHit: requests.countHit,
    countRequest: requests.countRequest,
    ...upstream.counters,
    report() {
      requests.flush();
      return { startedAt, ...requests.report(), ...upstream.report() };
    },
    close() {
      clearInterval(timer);
    },
  };
}

function createRequestTally(now: () => number) {
  const seconds = new SecondWindow<Omit<Second, 'second'>>(now, () => ({ results: {}, latency: [] }));
  const results: Record<string, number> = {};
  const families: Record<string, number> = {};
  const topHandles = new TopList(now);
  const topMisses = new TopList(now);
  let hits = 0;
  let sampled: string[] = [];

  function count(result: string, handle: string | undefined, times = 1): void {
    results[result] = (results[result] ?? 0) + times;
    const { results: current } = seconds.current();
    current[result] = (current[result] ?? 0) + times;
    if (handle === undefined) return;
    topHandles.add(handle, times);
    if (result === 'miss') topMisses.add(handle, times);
  }

  const addRequest = (family: string): void => {
    families[family] = (families[family] ?? 0) + 1;
  };

  return {
    countHit: (handle: string, family: string): void => {
      addRequest(family);
      if (++hits <= MAX_EXACT || hits % SAMPLE === 0) sampled.push(handle);
    },
    countRequest: ({ family, handle, result, ms }: CountedRequest): void => {
      addRequest(family);
      count(result, handle);
      addTo(seconds.current().latency, bucketOf(ms));
    },
    flush: (): void => {
      if (hits === 0) return;
      count('hit', undefined, hits);
      addTo(seconds.current().latency, 0, hits);
      for (const [at, handle] of sampled.entries()) topHandles.add(handle, at < MAX_EXACT ? 1 : SAMPLE);
      hits = 0;
      sampled = [];
    },
    report: () => ({
      results: { ...results },
      families: { ...families },
      seconds: seconds.last(),
      topHandles: topHandles.top(MAX_RANKED),
      topMisses: topMisses.top(MAX_RANKED),
    }),
  };
}

function createUpstreamTally(now: () => number) {
  const seconds = new SecondWindow<Omit<UpstreamSecond, 'second'>>(now, () => ({
    upstream: [],
    upstreamFailures: 0,
  }));
  const upstream = { requests: 0, failures: 0 };
  const errors: RecentError[] = [];
  const breakers: Record<string, string> = {};
  const servers: Record<string, ServerState> = {};
  const counters: Pick<Activity, 'countUpstreamRequest' | 'setBreakerState' | 'setServerState' | 'addError'> =
    {
      countUpstreamRequest({ isFailure, ms }) {
        const second = seconds.current();
        upstream.requests++;
        if (isFailure) {
          upstream.failures++;
          second.upstreamFailures++;
        }
        addTo(second.upstream, bucketOf(ms));
      },
      setBreakerState(state, server) {
        breakers[server] = state;
      },
      setServerState(server, state) {
        servers[server] = state;
      },
      addError(message) {
        errors.push({ at: new Date(now()).toISOString(), message });
        if (errors.length > MAX_ERRORS) errors.shift();
      },
    };
  const report = () => ({
    upstream: { ...upstream },
    upstreamSeconds: seconds.last(),
    errors: [...errors],
    breakers: { ...breakers },
    servers: { ...servers },
  });
  return { counters, report };
}

/** Records of the last minute by second. */
class SecondWindow<T extends object> {
  readonly #now: () => number;
  readonly #empty: () => T;
  #seconds: (T & { second: number })[] = [];

  constructor(now: () => number, empty: () => T) {
    this.#now = now;
    this.#empty = empty;
  }

  current(): T & { second: number } {
    const second = Math.floor(this.#now() / 1000);
    const last = this.#seconds.at(-1);
    if (last?.second === second) return last;
    const added = { ...this.#empty(), second };
    this.#seconds = [...this.#seconds.filter(isRecent(second)), added];
    return added;
  }

  last(): (T & { second: number })[] {
    return this.#seconds.filter(isRecent(Math.floor(this.#now() / 1000)));
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
