// The statistics as text: each figure with its unit, under a heading.
import { type Rows, countOf, printable, section } from './terminal.js';

/** In seconds. */
interface Latency {
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
    hits: number;
    misses: number;
    stale: number;
    errors: number;
    latency: Latency;
  };
  upstream: {
    requests: number;
    failures: number;
    inFlight: number;
    queued: number;
    latency: Latency;
    servers: ServerReport[];
  };
  redis: { state: string };
  memory: { store: string; entries: number; bytes: number; evictions: number }[];
  topHandles: { name: string; count: number }[];
}

const MAX_HANDLES = 10;

/** `perSecond`: requests since the report before, where there was one. */
export function statsText(report: StatsReport, perSecond?: number): string {
  const sections = [
    section('Proxy', proxyRows(report)),
    section('Requests (since the start)', requestRows(report.requests, perSecond)),
    section('Handle server (since the start)', upstreamRows(report.upstream)),
    section('Latency (since the start)', latencyRows(report)),
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

const requestRows = (
  { total, hits, misses, stale, errors }: StatsReport['requests'],
  perSecond: number | undefined,
): Rows => [
  ['Total', countOf(total, 'request')],
  ...(perSecond === undefined ? [] : ([['Rate', `${perSecond.toFixed(1)} requests/s`]] as const)),
  ['Hit share', shareOf(hits + stale, hits + stale + misses)],
  ['Hits', countOf(hits, 'request')],
  ['Misses', countOf(misses, 'request')],
  ['Stale hits', countOf(stale, 'request')],
  ['Errors', countOf(errors, 'request')],
];

const shareOf = (part: number, whole: number): string =>
  whole === 0 ? '– (no cacheable requests)' : `${Math.round((part / whole) * 100)} % (${part} of ${whole})`;

const upstreamRows = ({ requests, failures, servers, ...load }: StatsReport['upstream']): Rows => [
  ['Requests', countOf(requests, 'request')],
  ['Failures', countOf(failures, 'request')],
  ['Now', `${load.inFlight} in flight, ${load.queued} queued`],
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
  ['Proxy', percentilesOf(requests.latency)],
  ['Handle server', percentilesOf(upstream.latency)],
];

const percentilesOf = ({ p50, p99 }: Latency): string =>
  p50 === null || p99 === null
    ? '– (no requests)'
    : `median ${milliseconds(p50)}, 99th percentile ${milliseconds(p99)}`;

const milliseconds = (seconds: number): string => `${Number((seconds * 1000).toPrecision(3))} ms`;

const memoryRows = (memory: StatsReport['memory']): Rows =>
  memory.map(({ store, entries, bytes, evictions }) => [
    store,
    `${countOf(entries, 'entry', 'entries')}, ${(bytes / 1024 ** 2).toFixed(1)} MiB, ${countOf(evictions, 'eviction')}`,
  ]);

const handleRows = (topHandles: StatsReport['topHandles']): Rows =>
  topHandles.slice(0, MAX_HANDLES).map(({ name, count }) => [printable(name), countOf(count, 'request')]);
