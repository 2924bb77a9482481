// Every metric of the proxy: name, kind, labels and the help text an operator reads.

export interface MetricEntry {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly labelNames: readonly string[];
  readonly help: string;
}

export const METRICS = {
  requests: {
    name: 'handle_proxy_requests_total',
    type: 'counter',
    labelNames: ['family', 'result', 'status'],
    help: 'Requests answered, by interface (record, v2, redirect), by what became of them (hit, miss, stale, …) and by HTTP status.',
  },
  internalErrors: {
    name: 'handle_proxy_internal_errors_total',
    type: 'counter',
    labelNames: [],
    help: 'Failures of the proxy itself, each with an error line in the log; its request was answered with 500.',
  },
  requestSeconds: {
    name: 'handle_proxy_request_seconds',
    type: 'histogram',
    labelNames: ['family'],
    help: 'Time from request to answer; answers prepared beforehand take microseconds and are not timed.',
  },
  upstreamRequests: {
    name: 'handle_proxy_upstream_requests_total',
    type: 'counter',
    labelNames: ['outcome'],
    help: 'Reads sent to the upstream, by outcome (what it answered, or the code of the error).',
  },
  upstreamSeconds: {
    name: 'handle_proxy_upstream_seconds',
    type: 'histogram',
    labelNames: [],
    help: 'Time the upstream took for a read, failed reads included.',
  },
  cacheEntries: {
    name: 'handle_proxy_cache_entries',
    type: 'gauge',
    labelNames: ['store'],
    help: 'Entries in memory, by store (found, notFound).',
  },
  cacheBytes: {
    name: 'handle_proxy_cache_bytes',
    type: 'gauge',
    labelNames: ['store'],
    help: 'Bytes the entries in memory take, by store (found, notFound).',
  },
  cacheEvictions: {
    name: 'handle_proxy_cache_evictions_total',
    type: 'counter',
    labelNames: ['store'],
    help: 'Entries pushed out of memory for lack of room, by store (found, notFound).',
  },
  staleAnswers: {
    name: 'handle_proxy_stale_answers_total',
    type: 'counter',
    labelNames: ['reason'],
    help: 'Answers in which a stale record stood in, by reason (error, late, resting).',
  },
  breakerOpen: {
    name: 'handle_proxy_breaker_open',
    type: 'gauge',
    labelNames: ['server'],
    help: '1 while a Handle server (upstream or mirror, by address) is left alone after repeated failures, else 0.',
  },
  upstreamRunning: {
    name: 'handle_proxy_upstream_running',
    type: 'gauge',
    labelNames: ['kind'],
    help: 'Requests at the upstream now, by kind (read: shared by all who wait; passed: sent on for one caller).',
  },
  upstreamWaiting: {
    name: 'handle_proxy_upstream_waiting',
    type: 'gauge',
    labelNames: ['kind'],
    help: 'Requests that wait for their turn at the upstream, by kind (read, passed).',
  },
  turnedAway: {
    name: 'handle_proxy_turned_away_total',
    type: 'counter',
    labelNames: ['kind'],
    help: 'Requests that got no turn at the upstream in time, by kind (read, passed).',
  },
  rateLimited: {
    name: 'handle_proxy_rate_limited_total',
    type: 'counter',
    labelNames: [],
    help: 'Requests answered with 429 because of `http.rateLimit.perMinute`.',
  },
  connectionsDropped: {
    name: 'handle_proxy_connections_dropped_total',
    type: 'counter',
    labelNames: [],
    help: 'Connections of clients closed at once because of `server.maxConnections`.',
  },
  eventLoopDelay: {
    name: 'handle_proxy_event_loop_delay_seconds',
    type: 'gauge',
    labelNames: [],
    help: 'Delay of the event loop, 99th percentile of the last second; of the latest worker.',
  },
  redisErrors: {
    name: 'handle_proxy_redis_errors_total',
    type: 'counter',
    labelNames: ['command'],
    help: 'Redis commands that failed or took too long, by command.',
  },
  redisUp: {
    name: 'handle_proxy_redis_up',
    type: 'gauge',
    labelNames: [],
    help: '1 while Redis is connected (in all workers), 0 while it is away or not used.',
  },
} as const satisfies Record<string, MetricEntry>;

/** The rows of the README's table of metrics. */
export function metricRows(): string[] {
  return Object.values<MetricEntry>(METRICS).map(({ name, type, labelNames, help }) => {
    const labels = labelNames.map((label) => `\`${label}\``).join(', ') || 'none';
    return `| \`${name}\` | ${type} | ${labels} | ${help} |`;
  });
}
