// `npm run bench:restart`: measures import, snapshot, restart and export of many records with the built
// program.
import { type ChildProcess, spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { createWriteStream, mkdtempSync, rmSync, statSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fixed } from '../../support/fixed.js';

const RECORDS = Number(process.argv[2] ?? 1_000_000);
const folder = mkdtempSync(join(tmpdir(), 'bench-restart-'));
const seedFile = join(folder, 'records.ndjson');
const exported = join(folder, 'exported.ndjson.gz');
const snapshot = join(folder, 'snapshot');

const handleOf = (at: number): string => `21.T1/${at.toString(16).toUpperCase().padStart(8, '0')}`;

/** Returns an export line with about 600 bytes of values, a third of which differs between records. */
function lineOf(at: number): string {
  const random = Math.imul(at + 1, 0x9e3779b1) >>> 0;
  const value = (index: number, type: string, text: string) => ({
    ...{ index, type, data: { format: 'string', value: text } },
    ...{ ttl: 86_400, timestamp: '2026-11-21T10:00:00Z' },
  });
  const hash = Array.from({ length: 8 }, (_, nth) => Math.imul(random + nth, 0x85ebca6b) >>> 0)
    .map((part) => part.toString(16).padStart(8, '0'))
    .join('');
  const values = [
    value(1, 'URL', `https://repository.example.org/objects/${random}/${at}`),
    value(2, 'CHECKSUM', hash),
    value(3, 'EMAIL', 'curator@example.org'),
    value(4, 'TITLE', `Data set ${at} of station ${random % 997}`),
  ];
  const times = {
    requestedAt: '2026-11-21T10:00:00Z',
    staleAt: '2026-11-21T11:00:00Z',
    deleteAt: '2126-01-01',
  };
  return `${JSON.stringify({ handle: handleOf(at), ...times, values })}\n`;
}

async function writeSeed(): Promise<void> {
  const stream = createWriteStream(seedFile);
  for (let at = 0; at < RECORDS; at++) if (!stream.write(lineOf(at))) await once(stream, 'drain');
  stream.end();
  await once(stream, 'finish');
}

interface Running {
  child: ChildProcess;
  url: string;
  admin: string;
  line: (msg: string) => Promise<Record<string, unknown>>;
}

/** Child processes, killed when the bench ends. */
const children = new Set<ChildProcess>();

async function start(everyMs: number): Promise<Running> {
  const env = {
    ...{ PATH: process.env['PATH'], HOST: '127.0.0.1', PORT: '0', ADMIN_PORT: '0' },
    ...{ UPSTREAM_URL: 'none', CACHE_MAX_BYTES: '4GiB', CACHE_FOUND_MAX_ENTRIES: '2000000' },
    ...{ CACHE_SNAPSHOT_FILE: snapshot, ...fixed({ cache: { snapshot: { everyMs } } }) },
  };
  const child = spawn(process.execPath, ['--import', './test/support/preload-fixed.js', 'dist/main.js'], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.add(child);
  const log: Record<string, unknown>[] = [];
  const lines = createInterface({ input: child.stdout });
  const news = new EventEmitter().setMaxListeners(0);
  let isOver = false;
  lines.on('line', (text) => {
    log.push(JSON.parse(text) as Record<string, unknown>);
    news.emit('news');
  });
  lines.on('close', () => {
    isOver = true;
    news.emit('news');
  });
  const line = async (msg: string): Promise<Record<string, unknown>> => {
    for (;;) {
      const found = log.find((entry) => entry['msg'] === msg);
      if (found) return found;
      if (isOver) throw new Error(`no "${msg}"; the last line is ${JSON.stringify(log.at(-1))}`);
      await once(news, 'news');
    }
  };
  const { url, admin } = (await line('listening')) as { url: string; admin: string };
  return { child, url, admin, line };
}

async function stop({ child }: Running): Promise<void> {
  const closed = once(child, 'close');
  child.kill('SIGTERM');
  await closed;
  children.delete(child);
}

async function command(...args: string[]): Promise<number> {
  const startedAt = performance.now();
  const child = spawn(process.execPath, ['dist/main.js', ...args], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [code] = (await once(child, 'close')) as [number];
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}`);
  return performance.now() - startedAt;
}

/** Returns the latencies (ms) of one client that sends requests until the promise settles. */
async function hitsDuring(url: string, until: Promise<unknown>): Promise<number[]> {
  const agent = new Agent({ keepAlive: true });
  const latencies: number[] = [];
  const over = new AbortController();
  const abort = (): void => {
    over.abort();
  };
  until.then(abort, abort);
  while (!over.signal.aborted) {
    const startedAt = performance.now();
    const request = get(`${url}/api/handles/${handleOf(latencies.length % RECORDS)}`, { agent });
    const [response] = (await once(request, 'response')) as [NodeJS.ReadableStream];
    response.resume();
    await once(response, 'end');
    latencies.push(performance.now() - startedAt);
  }
  agent.destroy();
  return latencies.sort((one, other) => one - other);
}

const at = (latencies: number[], share: number): string =>
  (latencies[Math.floor(latencies.length * share)] ?? 0).toFixed(2);
const report = (name: string, ...texts: unknown[]): void => {
  const load = loadavg()[0]?.toFixed(1);
  process.stdout.write(`${name.padEnd(28)} ${texts.join(' ')}   (load ${load} on ${cpus().length} cores)\n`);
};
const seconds = (ms: unknown): string => `${(Number(ms) / 1000).toFixed(1)} s`;
const megabytes = (bytes: number): string => `${Math.round(bytes / 1e6)} MB`;

try {
  await writeSeed();
  report(`${RECORDS} records`, megabytes(statSync(seedFile).size), 'as lines of JSON');
  const first = await start(24 * 3_600_000);
  report('import', seconds(await command('import', seedFile, '--admin', first.admin)));
  report(
    'export',
    seconds(await command('export', '--prefix', '21.T1', '--output', exported, '--admin', first.admin)),
  );
  report('exported file', megabytes(statSync(exported).size));
  await stop(first);
  const { ms } = await first.line('snapshot written');
  report('snapshot at SIGTERM', seconds(ms), megabytes(statSync(snapshot).size));
  const second = await start(20_000);
  report('snapshot loaded', seconds((await second.line('snapshot loaded'))['ms']));
  const pause = new Promise((resolve) => setTimeout(resolve, 8000));
  const quiet = await hitsDuring(second.url, pause);
  report('hits, quiet', `p50 ${at(quiet, 0.5)} p99 ${at(quiet, 0.99)} ms, ${quiet.length} hits`);
  await new Promise((resolve) => setTimeout(resolve, 11_000));
  const busy = await hitsDuring(second.url, second.line('snapshot written'));
  report('hits while it is written', `p50 ${at(busy, 0.5)} p99 ${at(busy, 0.99)} ms, ${busy.length} hits`);
  report('snapshot in the background', seconds((await second.line('snapshot written'))['ms']));
  await stop(second);
} finally {
  for (const child of children) child.kill('SIGKILL');
  rmSync(folder, { recursive: true });
}
