// Lists all metrics: name, type, labels with their values, and help text.
import { CATALOGUE } from '../errors.js';

export type Labels = Readonly<Record<string, string>>;

/** Label values that do not depend on the deployment. */
export const VALUES = {
  interface: ['record', 'v2', 'redirect', 'native-tunnel', 'native-tcp', 'native-udp'],
  store: ['found', 'newcomers', 'notFound'],
  reason: ['error', 'timeout', 'backoff'],
  kind: ['read', 'forwarded'],
  dropReason: ['total', 'network', 'unread'],
  command: [
    'connect',
    'heartbeat',
    'get',
    'set',
    'open',
    'lock',
    'count',
    'limit',
    'leave',
    'claim',
    'changes',
  ],
  telemetry: ['log', 'trace'],
} as const;

export type LabelValue<Name extends keyof typeof VALUES> = (typeof VALUES)[Name][number];

type Statuses = Readonly<Record<string, readonly number[]>>;

const HTTP_FAILURES: Statuses = {
  refused: [401, 403],
  invalid: [400, 404, 405, 429],
  error: [500, 502, 503, 504],
};

/** Response codes by result, because native TCP and UDP have no HTTP status. */
const NATIVE: Statuses = {
  ...{ hit: [1, 100, 200], miss: [1, 100, 200], stale: [1], authoritative: [1, 100] },
  ...{ bypass: [1, 402], local: [1, 100], refused: [2, 301, 302, 303], invalid: [2, 4, 5], error: [2] },
};

/** Series from the start: the common statuses of each result. Others appear with their first response. */
const USUAL: Readonly<Record<LabelValue<'interface'>, Statuses>> = {
  record: {
    ...{ hit: [200, 304, 404], miss: [200, 404], stale: [200], authoritative: [200, 404] },
    ...{ bypass: [200], write: [200, 201] },
    ...HTTP_FAILURES,
  },
  v2: { hit: [200], miss: [200], stale: [200], bypass: [200], write: [201, 204], ...HTTP_FAILURES },
  redirect: {
    ...{ hit: [301, 302, 404], miss: [301, 302, 404], stale: [302], authoritative: [302, 404] },
    ...HTTP_FAILURES,
  },
  'native-tunnel': { hit: [200], miss: [200], stale: [200], authoritative: [200], ...HTTP_FAILURES },
  'native-tcp': NATIVE,
  'native-udp': NATIVE,
};

const USUAL_REQUESTS: Labels[] = VALUES.interface.flatMap((family) =>
  Object.entries(USUAL[family]).flatMap(([result, statuses]) =>
    statuses.map((status) => ({ interface: family, result, status: String(status) })),
  ),
);

export interface MetricEntry {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly labelNames?: readonly string[];
  readonly help: string;
  /**
   * Label sets to begin at 0, or Prometheus would miss their first increase; by default that of a metric without
   * labels. With a `server` label, each server has these series.
   */
  readonly fromStart?: readonly Labels[];
  /** Upper bounds of a histogram. */
  readonly buckets?: readonly number[];
}

const OUTCOMES = [
  ...['found', 'empty', 'not-found', 'refused'],
  ...Object.keys(CATALOGUE).filter((code) => code.startsWith('UPSTREAM_')),
];

/** Bucket bounds (s), from a hit to the default `upstream.timeout`. */
const REQUEST_BUCKETS = [
  ...[0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01],
  ...[0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
];

export const METRICS = {
  requests: {
    name: 'handle_proxy_requests_total',
    type: 'counter',
    labelNames: ['interface', 'result', 'status'],
    help: 'Responses by interface (record, v2, redirect, native-tunnel, native-tcp, native-udp), result (hit, miss, stale, …) and HTTP status, or for native-tcp and native-udp response code.',
    fromStart: USUAL_REQUESTS,
  },
  internalErrors: {
    name: 'handle_proxy_internal_errors_total',
    type: 'counter',
    help: 'Unexpected errors in the proxy, each with an error line in the log and a 500 for its request.',
  },
  requestDuration: {
    name: 'handle_proxy_request_duration_seconds',
    type: 'histogram',
    labelNames: ['interface', 'result'],
    help: 'Request duration, by interface and result as above; beyond 1,000 hits per second, 1 hit in 16 is timed and counted 16 times.',
    // Pairs repeat for each status; the histogram ignores duplicates.
    fromStart: USUAL_REQUESTS.map(({ interface: family = '', result = '' }) => ({
      interface: family,
      result,
    })),
    buckets: REQUEST_BUCKETS,
  },
  upstreamRequests: {
    name: 'handle_proxy_upstream_requests_total',
    type: 'counter',
    labelNames: ['server', 'outcome'],
    help: 'Upstream reads, by server (address of a Handle server or secondary; `referred` for all servers that referrals name) and outcome (kind of response or error code).',
    fromStart: OUTCOMES.map((outcome) => ({ outcome })),
  },
  upstreamRequestDuration: {
    name: 'handle_proxy_upstream_request_duration_seconds',
    type: 'histogram',
    labelNames: ['server'],
    help: 'Upstream read duration, including failures, by server as above.',
    fromStart: [{}],
    // From a fast upstream in the same network; no bound below a millisecond.
    buckets: REQUEST_BUCKETS.filter((bound) => bound >= 0.001),
  },
  cacheEntries: {
    name: 'handle_proxy_cache_entries',
    type: 'gauge',
    labelNames: ['store'],
    help: 'Entries in memory, by store: found, newcomers (found, but not used since), notFound.',
  },
  cacheBytes: {
    name: 'handle_proxy_cache_bytes',
    type: 'gauge',
    labelNames: ['store'],
    help: 'Bytes of entries in memory, by store (found, newcomers, notFound).',
  },
  cacheEvictions: {
    name: 'handle_proxy_cache_evictions_total',
    type: 'counter',
    labelNames: ['store'],
    help: 'Entries evicted from memory for lack of space, by store (found, newcomers, notFound).',
    fromStart: VALUES.store.map((store) => ({ store })),
  },
  staleResponses: {
    name: 'handle_proxy_stale_responses_total',
    type: 'counter',
    labelNames: ['reason'],
    help: 'Stale responses, by reason (error, timeout, backoff).',
    fromStart: VALUES.reason.map((reason) => ({ reason })),
  },
  breakerOpen: {
    name: 'handle_proxy_breaker_open',
    type: 'gauge',
    labelNames: ['server'],
    help: '1 while the circuit breaker of a Handle server (upstream or secondary, by address) is open, else 0.',
  },
  certificateExpiry: {
    name: 'handle_proxy_upstream_certificate_expiry_timestamp_seconds',
    type: 'gauge',
    labelNames: ['server'],
    help: 'Certificate expiry of each https Handle server or secondary (seconds since 1970), by address; checked at startup and every hour.',
  },
  upstreamInFlight: {
    name: 'handle_proxy_upstream_requests_in_flight',
    type: 'gauge',
    labelNames: ['server', 'kind'],
    help: 'Requests in flight, by Handle server (including its secondaries) and kind (read: shared by all waiting clients; forwarded: for one client).',
  },
  upstreamQueued: {
    name: 'handle_proxy_upstream_requests_queued',
    type: 'gauge',
    labelNames: ['server', 'kind'],
    help: 'Queued requests, by Handle server (including its secondaries) and kind (read, forwarded).',
  },
  upstreamConcurrencyLimit: {
    name: 'handle_proxy_upstream_concurrency_limit',
    type: 'gauge',
    labelNames: ['server', 'kind'],
    help: "Current limit of requests in flight, by Handle server and kind; for reads it adapts to the server's latency, between 8 and `upstream.concurrency`.",
  },
  rejected: {
    name: 'handle_proxy_upstream_rejected_total',
    type: 'counter',
    labelNames: ['server', 'kind'],
    help: 'Requests rejected because the queue for a Handle server was full or timed out, by server and kind (read, forwarded).',
    fromStart: VALUES.kind.map((kind) => ({ kind })),
  },
  connectionsDropped: {
    name: 'handle_proxy_connections_dropped_total',
    type: 'counter',
    labelNames: ['reason'],
    help: 'Client connections closed because of a limit, by reason (total: new connections above `server.maxConnections`, or 1,000 native connections; network: new connections above `server.maxConnectionsPerNetwork`; unread: unread responses above 256 MiB together).',
    fromStart: VALUES.dropReason.map((reason) => ({ reason })),
  },
  idleConnectionsClosed: {
    name: 'handle_proxy_idle_connections_closed_total',
    type: 'counter',
    help: 'Idle client connections closed to make room for new ones.',
  },
  eventLoopDelay: {
    name: 'handle_proxy_event_loop_delay_seconds',
    type: 'gauge',
    help: 'Event-loop delay, 99th percentile of the last second.',
  },
  redisErrors: {
    name: 'handle_proxy_redis_errors_total',
    type: 'counter',
    labelNames: ['command'],
    help: 'Failed or timed out Redis commands, by command.',
    fromStart: VALUES.command.map((command) => ({ command })),
  },
  redisUp: {
    name: 'handle_proxy_redis_up',
    type: 'gauge',
    help: '1 while Redis is connected, 0 while it is unreachable; no value if Redis is not configured.',
    // Without Redis there is no series, so that no alert fires.
    fromStart: [],
  },
  telemetryDropped: {
    name: 'handle_proxy_telemetry_dropped_total',
    type: 'counter',
    labelNames: ['kind'],
    help: 'Log lines and trace spans dropped, by kind (log: 4 Mi characters of lines were waiting, because stdout was full or its reader had stopped; trace: the collector did not accept the spans, or 4,096 were waiting for it).',
    fromStart: VALUES.telemetry.map((kind) => ({ kind })),
  },
} as const satisfies Record<string, MetricEntry>;
