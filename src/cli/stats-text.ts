// The statistics as text: each figure with its unit, under a heading.
import { type Rows, countOf, printable, section } from './terminal.js';

interface LatencyMs {
  p50: number | null;
  p99: number | null;
}

interface ServerReport {
  server: string;
  breaker: string;
  state: string;
  cause?: string;
  remedy?: string;
}

/** The part of `GET /stats` that the text shows. */
export interface StatsReport {
  version: string;
  uptimeSeconds: number;
  requests: {
    total: number;
    perSecond: number;
    byResult: Partial<Record<string, number>>;
    latencyMs: LatencyMs;
  };
  upstream: {
    requests: number;
    failures: number;
    latencyMs: LatencyMs;
    servers: ServerReport[];
  };
  redis: { state: string };
  memory: { store: string; entries: number; bytes: number }[];
  topHandles: { name: string; count: number }[];
}

const MAX_HANDLES = 10;

export function statsText(report: StatsReport): string {
  const sections = [
    section('Proxy', proxyRows(report)),
    section('Requests (since the start)', requestRows(report.requests)),
    section('Handle server (since the start)', upstreamRows(report.upstream)),
    section('Latency (last minute)', latencyRows(report)),
    section('Memory', memoryRows(report.memory)),
    section('Top handles (requests in the last 5 to 10 minutes)', handleRows(report.topHandles)),
  ];
  return sections.join('\n\n');
}

const proxyRows = ({ version, uptimeSeconds, redis }: StatsReport): Rows => [
  ['Version', version],
  ['Uptime', `${uptimeSeconds} s`],
  ['Redis', redis.state],
];

function requestRows({ total, perSecond, byResult }: StatsReport['requests']): Rows {
  const { hit = 0, miss = 0, stale = 0, error = 0 } = byResult;
  return [
    ['Total', countOf(total, 'request')],
    ['Rate', `${perSecond} requests/s (last 10 s)`],
    ['Hit share', shareOf(hit + stale, hit + stale + miss)],
    ['Misses', countOf(miss, 'request')],
    ['Stale hits', countOf(stale, 'request')],
    ['Errors', countOf(error, 'request')],
  ];
}

const shareOf = (part: number, whole: number): string =>
  whole === 0 ? '– (no cacheable requests)' : `${Math.round((part / whole) * 100)} % (${part} of ${whole})`;

const upstreamRows = ({ requests, failures, servers }: StatsReport['upstream']): Rows => [
  ['Requests', countOf(requests, 'request')],
  ['Failures', countOf(failures, 'request')],
  ...servers.flatMap((report) => [
    ['Server', serverState(report)] as const,
    ['Circuit breaker', `${report.breaker} (${report.server})`] as const,
  ]),
];

function serverState({ server, state, cause, remedy }: ServerReport): string {
  const reasons = [cause, remedy].filter((part) => part !== undefined);
  return [`${state} (${server})`, ...reasons].join('; ');
}

const latencyRows = ({ requests, upstream }: StatsReport): Rows => [
  ['Proxy', percentilesOf(requests.latencyMs)],
  ['Handle server', percentilesOf(upstream.latencyMs)],
];

const percentilesOf = ({ p50, p99 }: LatencyMs): string =>
  p50 === null ? '– (no requests)' : `median ${p50} ms, 99th percentile ${p99 ?? '–'} ms`;

const memoryRows = (memory: StatsReport['memory']): Rows =>
  memory.map(({ store, entries, bytes }) => [
    store,
    `${countOf(entries, 'entry', 'entries')}, ${(bytes / 1024 ** 2).toFixed(1)} MiB`,
  ]);

const handleRows = (topHandles: StatsReport['topHandles']): Rows =>
  topHandles.slice(0, MAX_HANDLES).map(({ name, count }) => [printable(name), countOf(count, 'request')]);
