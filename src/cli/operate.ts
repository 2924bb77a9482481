// The commands `purge`, `stats`, `traffic` and `report`, which call the admin listener.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ResolutionReport } from '../plugins/reports/plugin.js';
import type { TrafficReport } from '../plugins/traffic/plugin.js';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Operations } from '../host.js';
import { type AdminOptions, askAdmin, callAdmin, foreignResponse } from './client.js';
import { readHandleName } from './handles.js';
import { listenForInterrupt } from './paced-requests.js';
import { printableText } from '../handle/handle.js';
import {
  type CsvRows,
  EXIT,
  Failure,
  type Rows,
  countText,
  createFolder,
  csvText,
  print,
  printSection,
} from './terminal.js';

type Stats = Awaited<ReturnType<Operations['stats']>>;

interface JsonOption extends AdminOptions {
  json?: boolean;
}

interface PurgeOptions extends JsonOption {
  prefix?: string;
  all?: boolean;
  soft?: boolean;
}

/** Invalidates the given handles, all handles under a prefix, or all handles, in every instance. */
export async function purgeCommand(
  given: string[],
  { json, soft = false, ...options }: PurgeOptions,
): Promise<void> {
  const handles = given.map(readHandleName);
  const wrong = handles.find((handle) => !handle.includes('/'));
  if (wrong !== undefined)
    throw new Failure(
      `${printableText(wrong)} is not a handle; for all handles under it give --prefix.`,
      EXIT.usage,
    );
  const { selected, text } = purgeSelection(handles, options);
  const report = await askAdmin(options, {
    path: '/purge',
    member: 'shared',
    body: JSON.stringify({ ...selected, soft }),
  });
  const reach = (report as { shared: boolean }).shared
    ? 'in every instance'
    : 'in this instance; Redis is unavailable, so other instances follow when it is back';
  const done = `${soft ? 'Marked as stale' : 'Purged'} ${reach}: ${printableText(text)}`;
  print(json === true ? JSON.stringify(report) : done);
}

function purgeSelection(
  handles: string[],
  { prefix, all }: PurgeOptions,
): { selected: object; text: string } {
  const [first = '', ...more] = handles;
  const named = more.length === 0 ? first : countText(handles.length, 'handle');
  const [selection, ...others] = [
    handles.length > 0 && { selected: { handles }, text: named },
    prefix !== undefined && {
      selected: { prefix: `${prefix}/` },
      text: `all handles of the prefix ${prefix}`,
    },
    all === true && { selected: { all }, text: 'all handles' },
  ].filter((given) => given !== false);
  if (selection !== undefined && others.length === 0) return selection;
  throw new Failure('Give either handles, --prefix or --all.', EXIT.usage);
}

/** Prints limited networks and counts of traffic rules; with `unblock`, ends the limit of that network. */
export async function traffic({ unblock, ...options }: JsonOption & { unblock?: string }): Promise<void> {
  if (unblock !== undefined) {
    const path = `/traffic/blocked/${encodeURIComponent(unblock)}`;
    const response = await callAdmin(options, path, { method: 'DELETE' });
    response.destroy();
    if (response.statusCode !== 204) throw foreignResponse(options, path);
    print(`No longer limited: ${unblock}`);
    return;
  }
  const report = (await askAdmin(options, { path: '/traffic', member: 'blocked' })) as TrafficReport;
  print(options.json === true ? JSON.stringify(report) : trafficText(report));
}

function trafficText({ blocked, rules }: TrafficReport): string {
  const networks = blocked.map(
    ({ network, until, reason }) => [network, `until ${until}, ${reason}`] as const,
  );
  const used = rules.map(
    ({ name, ...did }) =>
      [name, `${did.matched} matched, ${did.limited} limited, ${did.shadowed} shadowed`] as const,
  );
  return `${printSection('Limited networks', networks)}\n\n${printSection('Rules (since the start)', used)}`;
}

const WATCH_MS = 1000;
/** ANSI sequence that clears the screen and moves the cursor to the top left. */
const CLEAR = '\u001b[2J\u001b[H';

export async function stats(options: JsonOption & { watch?: boolean }): Promise<void> {
  const { watch = false, json = false } = options;
  let before: { at: number; total: number } | undefined;
  const fetchStats = async (signal?: AbortSignal): Promise<string> => {
    const report = (await askAdmin(options, { path: '/stats', member: 'requests', signal })) as Stats;
    if (json) return JSON.stringify(report);
    const now = { at: performance.now(), total: report.requests.total };
    const perSecond = before && ((now.total - before.total) * 1000) / (now.at - before.at);
    before = now;
    return statsText(report, perSecond);
  };
  if (!watch) {
    print(await fetchStats());
    return;
  }
  const clear = process.stdout.isTTY && !json ? CLEAR : '';
  const { signal, release } = listenForInterrupt();
  try {
    for (;;) {
      const text = await fetchStats(signal);
      process.stdout.write(clear);
      print(text);
      await sleep(WATCH_MS, undefined, { signal });
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    release();
  }
}

const MAX_HANDLES = 10;

/** Formats the statistics. `perSecond`: requests since the previous reading; undefined for the first. */
function statsText(report: Stats, perSecond: number | undefined): string {
  const { version, uptimeSeconds, redis, requests, upstream, memory, topHandles } = report;
  const top = topHandles.slice(0, MAX_HANDLES);
  return [
    printSection('Proxy', [
      ['Version', version],
      ['Uptime', `${uptimeSeconds} s`],
      ['Redis', redis.state],
    ]),
    printSection('Requests (since the start)', requestRows(requests, perSecond)),
    printSection('Handle server (since the start)', upstreamRows(upstream)),
    printSection('Latency (since the start)', [
      ['Proxy', latencyText(requests.latency)],
      ['Handle server', latencyText(upstream.latency)],
    ]),
    printSection('Memory', memory.map(memoryRow)),
    printSection(
      'Top handles (requests in the last 5 to 10 minutes)',
      top.map(({ name, count }) => [printableText(name), countText(count, 'request')]),
    ),
  ].join('\n\n');
}

function requestRows(requests: Stats['requests'], perSecond: number | undefined): Rows {
  const { total, hits, misses, stale, errors } = requests;
  const [served, all] = [hits + stale, hits + stale + misses];
  const share =
    all === 0 ? '– (no cacheable requests)' : `${Math.round((served / all) * 100)} % (${served} of ${all})`;
  return [
    ['Total', countText(total, 'request')],
    ['Rate', perSecond === undefined ? undefined : `${perSecond.toFixed(1)} requests/s`],
    ['Hit ratio', share],
    ['Hits', countText(hits, 'request')],
    ['Misses', countText(misses, 'request')],
    ['Stale hits', countText(stale, 'request')],
    ['Errors', countText(errors, 'request')],
  ];
}

const upstreamRows = ({ requests, failures, servers, ...load }: Stats['upstream']): Rows => [
  ['Requests', countText(requests, 'request')],
  ['Failures', countText(failures, 'request')],
  ['Now', `${load.inFlight} in flight, ${load.queued} queued`],
  ...servers.flatMap(({ server, state, cause, remedy, breaker }): Rows => {
    const reasons = [cause, remedy].filter((part) => part !== undefined);
    return [
      ['Server', [`${state} (${server})`, ...reasons].join('; ')],
      ['Circuit breaker', `${breaker} (${server})`],
    ];
  }),
];

function latencyText({ p50, p99 }: Stats['requests']['latency']): string {
  if (p50 === null || p99 === null) return '– (no requests)';
  const milliseconds = (seconds: number): string => `${Number((seconds * 1000).toPrecision(3))} ms`;
  return `median ${milliseconds(p50)}, 99th percentile ${milliseconds(p99)}`;
}

function memoryRow({ store, entries, bytes, evictions }: Stats['memory'][number]): Rows[number] {
  const size = `${(bytes / 1024 ** 2).toFixed(1)} MiB`;
  return [store, `${countText(entries, 'entry', 'entries')}, ${size}, ${countText(evictions, 'eviction')}`];
}

interface ReportOptions extends JsonOption {
  prefix: string;
  month?: string;
  csv?: string;
}

export async function report({ prefix, month, csv, json, ...options }: ReportOptions): Promise<void> {
  const query = new URLSearchParams({ prefix, ...(month !== undefined && { month }) });
  const call = { path: `/reports?${query.toString()}`, member: 'topHandles' };
  const found = (await askAdmin(options, call)) as ResolutionReport;
  if (csv === undefined) {
    print(json === true ? JSON.stringify(found) : reportText(found));
    return;
  }
  createFolder(csv);
  for (const [name, rows] of Object.entries(csvFiles(found))) await writeFile(join(csv, name), csvText(rows));
  print(`Written to ${printableText(csv)}: summary.csv, top.csv, failed.csv`);
}

/** Formats the report; JSON and CSV contain more than `MAX_HANDLES` handles. */
function reportText({ topHandles, topUnknown, ...totals }: ResolutionReport): string {
  const { prefix, month, resolutions, byInterface } = totals;
  return [
    printSection(`Resolutions of ${printableText(prefix)} in ${month}`, [
      ['Total', countText(resolutions, 'read')],
      ['Unknown handles', `${countText(totals.unknown, 'read')}, ${shareOf(totals.unknown, resolutions)}`],
      ['Robots', `${countText(totals.robots, 'read')}, ${shareOf(totals.robots, resolutions)}`],
    ]),
    printSection(
      'Interfaces',
      Object.entries(byInterface).map(([name, count]) => [name, countText(count, 'read')]),
    ),
    printSection(`Top handles${precisionOf(topHandles)}`, rowsOf(topHandles)),
    printSection(`Top unknown handles${precisionOf(topUnknown)}`, rowsOf(topUnknown)),
  ].join('\n\n');
}

type ListedHandles = ResolutionReport['topHandles'];

const shareOf = (part: number, all: number): string =>
  all === 0 ? '–' : `${Math.round((1000 * part) / all) / 10} %`;

const precisionOf = ({ exact, maxError }: ListedHandles): string =>
  exact ? '' : ` (not exact: counts differ by at most ${maxError})`;

const rowsOf = ({ handles }: ListedHandles): Rows =>
  handles
    .slice(0, MAX_HANDLES)
    .map(({ handle, count }) => [printableText(handle), countText(count, 'read')] as const);

function csvFiles({ topHandles, topUnknown, ...totals }: ResolutionReport): Record<string, CsvRows> {
  const { prefix, month, byInterface, ...counts } = totals;
  const listed = ({ handles, maxError }: ListedHandles): CsvRows => [
    ['handle', 'count', 'max_error'],
    ...handles.map(({ handle, count }) => [handle, count, maxError]),
  ];
  const figures = [...Object.entries(counts), ...Object.entries(byInterface)];
  const summary = figures.map(([figure, count]) => [prefix, month, figure, count]);
  return {
    'summary.csv': [['prefix', 'month', 'figure', 'count'], ...summary],
    'top.csv': listed(topHandles),
    'failed.csv': listed(topUnknown),
  };
}
