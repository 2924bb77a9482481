// The `bench` command: sends requests to a running proxy and reports throughput, latency and hit ratio.
import { finished } from 'node:stream/promises';
import { Pool } from 'undici';
import { isLoopback } from '../config/addresses.js';
import { handleToPath } from '../handle/handle.js';
import { readHandleName, readHandleLines } from './handles.js';
import { sendPaced } from './paced-requests.js';
import { EXIT, Failure, countText, print, tableLines } from './terminal.js';

interface BenchOptions {
  proxy: string;
  file?: string;
  /** Maximum duration in seconds. */
  duration: number;
  requests: number;
  connections: number;
  rate: number;
  remote?: boolean;
  json?: boolean;
}

interface Measurements {
  seconds: number;
  latenciesMs: number[];
  statuses: Map<number, number>;
  hits: number;
  /** Requests without a complete response. */
  failed: number;
}

/** Time (ms) to complete requests that are in flight at the end. */
const GRACE_MS = 5000;

export async function bench(given: string[], options: BenchOptions): Promise<void> {
  const { file, json = false } = options;
  assertMayBench(options);
  const handles = given.map(readHandleName);
  if (file !== undefined) for await (const handle of readHandleLines(file)) handles.push(handle);
  if (handles.length === 0) throw new Failure('Give handles or a --file of handles.', EXIT.usage);
  const report = createBenchReport(await measure(handles, options));
  print(json ? JSON.stringify(report) : reportTable(report));
  const failures = countFailures(report);
  if (failures > 0) throw new Failure(`${countText(failures, 'request')} failed`);
}

/** Requires --remote for remote proxies, in case PROXY_URL still names a public service. */
function assertMayBench({ proxy, remote = false }: BenchOptions): void {
  if (remote || isLoopback(new URL(proxy).hostname)) return;
  const text = `${proxy} is on another machine. Give --remote if you may put it under load.`;
  throw new Failure(text, EXIT.usage);
}

async function measure(handles: readonly string[], options: BenchOptions): Promise<Measurements> {
  const { origin, pathname } = new URL(options.proxy);
  const base = `${pathname.replace(/\/$/, '')}/api/handles/`;
  const paths = handles.map((handle) => base + handleToPath(handle));
  const pool = new Pool(origin, { connections: options.connections, pipelining: 1 });
  const measured: Measurements = { seconds: 0, latenciesMs: [], statuses: new Map(), hits: 0, failed: 0 };
  const startedAt = performance.now();
  const endsAt = startedAt + options.duration * 1000;
  const cut = setTimeout(() => void pool.destroy(), options.duration * 1000 + GRACE_MS);
  let sent = 0;
  await sendPaced({
    concurrency: options.connections,
    rate: options.rate,
    next: () =>
      sent >= options.requests || performance.now() >= endsAt ? undefined : paths[sent++ % paths.length],
    send: (path) => measureOne(pool, path, measured),
  });
  measured.seconds = (performance.now() - startedAt) / 1000;
  clearTimeout(cut);
  await pool.destroy();
  return measured;
}

async function measureOne(pool: Pool, path: string, measured: Measurements): Promise<void> {
  const sentAt = performance.now();
  try {
    const { statusCode, headers, body } = await pool.request({ path, method: 'GET' });
    // `dump` resolves for a response that breaks off, and ends one of more than 128 KiB.
    await finished(body.resume());
    measured.latenciesMs.push(performance.now() - sentAt);
    measured.statuses.set(statusCode, (measured.statuses.get(statusCode) ?? 0) + 1);
    if (String(headers['cache-status']).includes('; hit')) measured.hits++;
  } catch {
    measured.failed++;
  }
}

type BenchReport = ReturnType<typeof createBenchReport>;

/** Creates the report. `hitRatio` is between 0 and 1; it and `latencyMs` are null if no response came. */
function createBenchReport({ seconds, latenciesMs, statuses, hits, failed }: Measurements) {
  const sorted = Float64Array.from(latenciesMs).sort();
  const responses = sorted.length;
  /** Returns the nearest-rank percentile, which is a measured latency. */
  const percentile = (share: number): number => rounded(sorted[Math.ceil(share * responses) - 1] ?? 0);
  const latencyMs = { p50: percentile(0.5), p90: percentile(0.9), p99: percentile(0.99), max: percentile(1) };
  return {
    seconds: rounded(seconds),
    responses,
    perSecond: Math.round(responses / seconds),
    hitRatio: responses === 0 ? null : hits / responses,
    latencyMs: responses === 0 ? null : latencyMs,
    statuses: Object.fromEntries(statuses),
    unanswered: failed,
  };
}

const rounded = (value: number): number => Math.round(value * 100) / 100;

function countFailures({ statuses, unanswered }: BenchReport): number {
  const bad = Object.entries(statuses).filter(([status]) => status !== '404' && !status.startsWith('2'));
  return bad.reduce((sum, [, count]) => sum + count, unanswered);
}

function reportTable(report: BenchReport): string {
  const { seconds, responses, perSecond, hitRatio, latencyMs, statuses, unanswered } = report;
  const latency = Object.entries(latencyMs ?? {}).map(([name, ms]) => `${name} ${ms} ms`);
  return tableLines([
    ['responses', `${responses} in ${seconds} s (${perSecond}/s)`],
    ['hits', hitRatio === null ? '–' : `${(hitRatio * 100).toFixed(1)} %`],
    ['latency', latency.length === 0 ? '–' : latency.join(' · ')],
    ...Object.entries(statuses).map(([status, count]) => [`status ${status}`, String(count)]),
    ['no response', String(unanswered)],
  ]).join('\n');
}
