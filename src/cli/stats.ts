// `stats`: the current statistics of a proxy, once or refreshed every second.
import { setTimeout as sleep } from 'node:timers/promises';
import { type AdminOptions, callAdmin } from './client.js';
import { listenForInterrupt } from './paced-requests.js';
import { nameTable, printable } from './terminal.js';

export interface StatsOptions extends AdminOptions {
  watch?: boolean;
  json?: boolean;
}

const WATCH_MS = 1000;
/** ANSI: clear the screen, move the cursor to the top left. */
const CLEAR = '\u001b[2J\u001b[H';

export async function stats(options: StatsOptions): Promise<void> {
  const { watch = false, json = false } = options;
  const fetchStats = async (): Promise<string> => {
    const report = await callAdmin(options, '/stats');
    return json ? JSON.stringify(report) : statsTable(report as StatsReport);
  };
  if (!watch) {
    process.stdout.write(`${await fetchStats()}\n`);
    return;
  }
  const clear = process.stdout.isTTY && !json ? CLEAR : '';
  const { signal, release } = listenForInterrupt();
  while (!signal.aborted) {
    process.stdout.write(`${clear}${await fetchStats()}\n`);
    await sleep(WATCH_MS, undefined, { signal }).catch(() => undefined);
  }
  release();
}

interface LatencyMs {
  p50: number | null;
  p99: number | null;
}

/** The part of `GET /stats` that the table shows. */
interface StatsReport {
  uptimeSeconds: number;
  requests: {
    total: number;
    perSecond: number;
    hitRatio: number | null;
    byResult: Partial<Record<string, number>>;
    latencyMs: LatencyMs;
  };
  upstream: {
    requests: number;
    failures: number;
    latencyMs: LatencyMs;
    servers: { server: string; breaker: string }[];
  };
  redis: { state: string };
  memory: { store: string; entries: number; bytes: number }[];
  topHandles: { name: string; count: number }[];
}

const MAX_HANDLES = 10;

function statsTable({ requests, upstream, redis, memory, topHandles, ...more }: StatsReport): string {
  const { hit = 0, miss = 0, stale = 0, error = 0 } = requests.byResult;
  const ratio = requests.hitRatio === null ? '–' : `${(requests.hitRatio * 100).toFixed(1)} %`;
  return nameTable([
    ['uptime', `${more.uptimeSeconds} s`],
    ['requests', `${requests.total} (${requests.perSecond}/s)`],
    ['hits', `${hit} (${ratio})`],
    ['misses · stale · errors', `${miss} · ${stale} · ${error}`],
    ['latency p50 · p99', inMs(requests.latencyMs)],
    ['upstream', `${upstream.requests} requests, ${upstream.failures} failures, ${inMs(upstream.latencyMs)}`],
    ...upstream.servers.map(({ server, breaker }) => ['breaker', `${breaker} ${server}`] as const),
    ['redis', redis.state],
    ...memory.map(
      ({ store, entries, bytes }) =>
        [`memory ${store}`, `${entries} entries, ${(bytes / 1024 ** 2).toFixed(1)} MiB`] as const,
    ),
    ...topHandles.slice(0, MAX_HANDLES).map(({ name, count }) => [String(count), printable(name)] as const),
  ]);
}

const inMs = ({ p50, p99 }: LatencyMs): string => `${p50 ?? '–'} ms · ${p99 ?? '–'} ms`;
