// Renders a message from the event stream.
import { draw, element, putFigure, putHealth, putRows, putState, putText } from './dom.js';
import { bytes, clock, counted, joined, percent, plural, rate, span, time } from './format.js';
import { overallHealth, processHealth, redisHealth, serverHealth } from './health.js';

/** Maximum chart points, one per second. */
const POINTS = 60;

/** What each store of the memory contains. */
const STORED = { found: 'record', newcomers: 'new record', notFound: 'unknown handle' };

function drawAll(history) {
  const missing = Math.max(0, POINTS - history.length);
  const drawEach = (id, read, options) => {
    draw(id, [...new Array(missing).fill(null), ...history.map(read)], options);
  };
  drawEach('hits', ({ hitRatio }) => hitRatio, { max: 1, format: percent });
  drawEach('rate', ({ requestsPerSecond }) => requestsPerSecond, { format: (value) => [counted(value)] });
  drawEach('latency', ({ latency }) => latency.p99, { format: time });
  const marks = history.flatMap(({ upstream }, at) => (upstream.failures > 0 ? [missing + at] : []));
  drawEach('upstream', ({ upstream }) => upstream.latency.p99, { format: time, marks });
}

export function render(stats) {
  const { requests, lastMinute } = stats;
  putFigure(
    'hits',
    percent(lastMinute.hitRatio),
    joined([sinceStart(requests), ...audited(stats.audit), ...stats.mirrors.map(mirrored)], '\n'),
  );
  const total = `${counted(requests.total)} in ${span(stats.uptimeSeconds)}`;
  putFigure('rate', [rate(lastMinute.requestsPerSecond)], total);
  putFigure('latency', time(lastMinute.latency.p99), others(lastMinute.latency));
  const { latency, requestsPerSecond } = lastMinute.upstream;
  const load = `${stats.upstream.inFlight} in flight, ${stats.upstream.queued} queued`;
  const requestRate = `${rate(requestsPerSecond)} requests per second, ${load}`;
  putFigure('upstream', time(latency.p99), joined([others(latency), requestRate], '\n'));
  renderParts(stats);
  const rows = (list) => list.map(({ name, count }) => [counted(count), name]);
  putRows('handles', rows(stats.topHandles), 'No requests.');
  putRows('misses', rows(stats.topMisses), 'No misses.');
  putRows('errors', groupErrors(stats.recentErrors), 'None.');
  if (stats.traffic !== undefined) renderTraffic(stats.traffic);
  drawAll(stats.history);
  putText('connection', 'Live');
}

function sinceStart({ hitRatio, hits, misses, stale }) {
  if (hitRatio === null) return 'no cacheable reads yet';
  const counts = `${counted(hits)} hits, ${counted(misses)} misses, ${counted(stale)} stale`;
  return `${joined(percent(hitRatio))} since the start: ${counts}`;
}

/** Formats a percentage with four decimals, rounded down, so that only a complete match shows 100 %. */
function audited({ compared, equal }) {
  if (compared === 0) return [];
  const part = Math.floor((equal / compared) * 1_000_000) / 10_000;
  return [`${part} % of ${plural(compared, 'audited hit')} in 24 h equal to the Handle server's record`];
}

function mirrored({ prefix, handles: { listed, checked }, recordsAgeSeconds }) {
  const known = `mirror of ${prefix}: ${plural(listed, 'handle')}`;
  if (recordsAgeSeconds === null) return `${known}, ${counted(checked)} copied`;
  return `${known}, all read in the last ${span(recordsAgeSeconds)}`;
}

const others = ({ p50, p95 }) =>
  p50 === null ? 'no requests in the last minute' : `50 %: ${joined(time(p50))}, 95 %: ${joined(time(p95))}`;

function describeServer({ server, breaker, state, cause, remedy }) {
  const { host } = new URL(server);
  if (state !== 'failing') return `${host}: ${state}, breaker ${breaker}`;
  return `${host}: ${[cause, remedy].filter(Boolean).join('; ')}; breaker ${breaker}`;
}

function renderParts(stats) {
  const { servers } = stats.upstream;
  const [server, redis, process] = [
    serverHealth(stats),
    redisHealth(stats.redis),
    processHealth(stats.process),
  ];
  putHealth('server', server, [...servers.map(describeServer), server.detail].join('\n'));
  putHealth('redis', redis);
  const stores = stats.memory.map(({ store, entries, bytes: size, evictions }) => {
    const stored = plural(entries, STORED[store]);
    return `${stored}, ${joined(bytes(size))}, ${plural(evictions, 'eviction')}`;
  });
  putFigure('memory', bytes(stats.process.rssBytes), stores.join('\n'));
  putHealth('process', process);
  putState(...overallHealth(server, redis, process));
}

/** Merges repeated errors into one row. */
function groupErrors(errors) {
  const groups = new Map();
  for (const { at, message } of errors) {
    const known = groups.get(message);
    if (known) known.count++;
    else groups.set(message, { at, count: 1 });
  }
  return [...groups].map(([message, { at, count }]) => [
    clock(at),
    count === 1 ? message : `${message} (${count} times)`,
  ]);
}

const REASONS = {
  'unknown-names': 'asks for handles that do not exist',
  'most-misses': 'makes most of the misses',
};

/** Shows clients, rules and limited networks. */
function renderTraffic({ networks, agents, rules, blocked, blockedCount }) {
  putRows('networks', networks.map(describeClient), 'No misses.');
  putRows('agents', agents.map(describeClient), 'No misses.');
  putRows('rules', rules.map(describeRule), 'None.');
  renderBlocked(blocked, blockedCount);
}

const describeClient = ({ name, misses }) => [counted(misses), name || '(none)'];

const describeRule = ({ name, matched, limited, shadowed }) => [
  counted(limited),
  `${name}: ${counted(matched)} passed, ${counted(shadowed)} in shadow`,
];

/** Hides the list while it is empty. */
function renderBlocked(blocked, count) {
  element('blocked-part').hidden = count === 0;
  const rows = blocked.map(({ network, until, reason }) => [clock(until), `${network} ${REASONS[reason]}`]);
  putRows('blocked', rows, '');
  if (count > 0)
    putText('blocked-more', `${plural(count, 'network')}; to end one: DELETE /traffic/blocked/<network>`);
}
