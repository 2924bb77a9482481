// All metrics of the proxy: name, type, labels and help text.

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
    help: 'Responses by interface (record, v2, redirect), result (hit, miss, stale, …) and HTTP status.',
  },
  internalErrors: {
    name: 'handle_proxy_internal_errors_total',
    type: 'counter',
    labelNames: [],
    help: 'Unexpected errors in the proxy, each with an error line in the log and a 500 for its request.',
  },
  requestSeconds: {
    name: 'handle_proxy_request_seconds',
    type: 'histogram',
    labelNames: ['family'],
    help: 'Duration of requests; responses from the response cache take microseconds and are not measured.',
  },
  upstreamRequests: {
    name: 'handle_proxy_upstream_requests_total',
    type: 'counter',
    labelNames: ['outcome'],
    help: 'Reads sent to the upstream, by outcome (kind of response or error code).',
  },
  upstreamSeconds: {
    name: 'handle_proxy_upstream_seconds',
    type: 'histogram',
    labelNames: [],
    help: 'Duration of upstream reads, failures included.',
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
    help: 'Bytes of entries in memory, by store (found, notFound).',
  },
  cacheEvictions: {
    name: 'handle_proxy_cache_evictions_total',
    type: 'counter',
    labelNames: ['store'],
    help: 'Entries evicted from memory for lack of space, by store (found, notFound).',
  },
  staleAnswers: {
    name: 'handle_proxy_stale_answers_total',
    type: 'counter',
    labelNames: ['reason'],
    help: 'Stale responses, by reason (error, late, resting).',
  },
  breakerOpen: {
    name: 'handle_proxy_breaker_open',
    type: 'gauge',
    labelNames: ['server'],
    help: '1 while the circuit breaker of a Handle server (upstream or mirror, by address) is open, else 0.',
  },
  upstreamRunning: {
    name: 'handle_proxy_upstream_running',
    type: 'gauge',
    labelNames: ['kind'],
    help: 'Requests in flight at the upstream, by kind (read: shared by all waiting clients; passed: forwarded for one client).',
  },
  upstreamWaiting: {
    name: 'handle_proxy_upstream_waiting',
    type: 'gauge',
    labelNames: ['kind'],
    help: 'Requests queued for the upstream, by kind (read, passed).',
  },
  rejected: {
    name: 'handle_proxy_turned_away_total',
    type: 'counter',
    labelNames: ['kind'],
    help: 'Requests rejected because the queue for the upstream was full or timed out, by kind (read, passed).',
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
    help: 'Client connections closed at once because of `server.maxConnections`.',
  },
  eventLoopDelay: {
    name: 'handle_proxy_event_loop_delay_seconds',
    type: 'gauge',
    labelNames: [],
    help: 'Event loop delay, 99th percentile of the last second; the maximum of all workers.',
  },
  redisErrors: {
    name: 'handle_proxy_redis_errors_total',
    type: 'counter',
    labelNames: ['command'],
    help: 'Failed or timed out Redis commands, by command.',
  },
  redisUp: {
    name: 'handle_proxy_redis_up',
    type: 'gauge',
    labelNames: [],
    help: '1 while Redis is connected in all workers, 0 while it is unreachable or not configured.',
  },
} as const satisfies Record<string, MetricEntry>;

/** The rows of the table of metrics in README.md of this folder. */
export function metricRows(): string[] {
  return Object.values<MetricEntry>(METRICS).map(({ name, type, labelNames, help }) => {
    const labels = labelNames.map((label) => `\`${label}\``).join(', ') || 'none';
    return `| \`${name}\` | ${type} | ${labels} | ${help} |`;
  });
}
