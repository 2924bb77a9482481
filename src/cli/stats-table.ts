// The statistics as a table for a terminal.
import { printable } from './printable.js';

interface Percentiles {
  p50: number | null;
  p99: number | null;
}

/** The part of `GET /stats` that is shown. */
export interface ShownStats {
  uptimeSeconds: number;
  requests: {
    total: number;
    perSecond: number;
    hitRatio: number | null;
    byResult: Partial<Record<string, number>>;
    latencyMs: Percentiles;
  };
  upstream: {
    requests: number;
    failures: number;
    latencyMs: Percentiles;
    servers: { server: string; breaker: string }[];
  };
  redis: { state: string };
  memory: { store: string; entries: number; bytes: number }[];
  topHandles: { name: string; count: number }[];
}

const MOST_HANDLES = 10;

export function statsTable({ requests, upstream, redis, memory, topHandles, ...more }: ShownStats): string {
  const { hit = 0, miss = 0, stale = 0, error = 0 } = requests.byResult;
  const ratio = requests.hitRatio === null ? '–' : `${(requests.hitRatio * 100).toFixed(1)} %`;
  const rows: [string, string][] = [
    ['up', `${more.uptimeSeconds} s`],
    ['answers', `${requests.total} (${requests.perSecond}/s)`],
    ['hits', `${hit} (${ratio})`],
    ['misses · stale · errors', `${miss} · ${stale} · ${error}`],
    ['latency p50 · p99', inMs(requests.latencyMs)],
    ['upstream', `${upstream.requests} asked, ${upstream.failures} failed, ${inMs(upstream.latencyMs)}`],
    ...upstream.servers.map(({ server, breaker }): [string, string] => ['breaker', `${breaker} ${server}`]),
    ['redis', redis.state],
    ...memory.map(({ store, entries, bytes }): [string, string] => [
      `memory ${store}`,
      `${entries} entries, ${(bytes / 1024 ** 2).toFixed(1)} MiB`,
    ]),
    ...topHandles
      .slice(0, MOST_HANDLES)
      .map(({ name, count }): [string, string] => [String(count), printable(name)]),
  ];
  return rows.map(([name, value]) => `${name.padEnd(26)} ${value}`).join('\n');
}

const inMs = ({ p50, p99 }: Percentiles): string => `${p50 ?? '–'} ms · ${p99 ?? '–'} ms`;
