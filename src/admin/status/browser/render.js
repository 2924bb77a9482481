// Renders one message of the event stream.
import { draw } from './chart.js';
import { putFigure, putHealth, putRows, putState, putText } from './dom.js';
import { bytes, counted, joined, percent, plural, rate, span, time } from './format.js';
import { overallHealth, processHealth, redisHealth, serverHealth } from './health.js';
import { renderTraffic } from './traffic.js';

function drawAll(history) {
  const of = (name) => history.map((point) => point[name]);
  draw('hits', of('hitRatio'), { max: 1, format: percent });
  draw('rate', of('answers'), { format: (value) => [counted(value)] });
  draw('latency', of('p99Ms'), { format: time });
  const marks = history.flatMap(({ upstreamFailures }, at) => (upstreamFailures > 0 ? [at] : []));
  draw('upstream', of('upstreamP99Ms'), { format: time, marks });
}

export function render(stats) {
  const { requests, upstream } = stats;
  putFigure('hits', percent(requests.hitRatioLastMinute), sinceStart(requests));
  putFigure('rate', [rate(requests.perSecond)], `${counted(requests.total)} in ${span(stats.uptimeSeconds)}`);
  putFigure('latency', time(requests.latencyMs.p99), others(requests.latencyMs));
  const load = `${upstream.running} running, ${upstream.waiting} waiting`;
  const requestRate = `${rate(upstream.perSecond)} requests per second, ${load}`;
  putFigure(
    'upstream',
    time(upstream.latencyMs.p99),
    joined([others(upstream.latencyMs), requestRate], '\n'),
  );
  renderParts(stats);
  const rows = (list) => list.map(({ name, count }) => [counted(count), name]);
  putRows('handles', rows(stats.topHandles), 'No requests.');
  putRows('misses', rows(stats.topMisses), 'No misses.');
  putRows('errors', groupErrors(stats.recentErrors), 'None.');
  renderTraffic(stats.traffic);
  drawAll(stats.history);
  putText('connection', 'Live');
}

const sinceStart = ({ hitRatio }) =>
  hitRatio === null ? 'no cacheable reads yet' : `${joined(percent(hitRatio))} since the start`;

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
  const stores = stats.memory.map(({ store, entries, bytes: size }) => {
    return `${plural(entries, store === 'found' ? 'record' : 'unknown handle')}, ${joined(bytes(size))}`;
  });
  putFigure('memory', bytes(stats.process.rssBytes), stores.join('\n'));
  putHealth('process', process);
  putState(...overallHealth(server, redis, process));
}

/** Repeated errors are one row. */
function groupErrors(errors) {
  const groups = new Map();
  for (const { at, message } of errors) {
    const known = groups.get(message);
    if (known) known.count++;
    else groups.set(message, { at, count: 1 });
  }
  return [...groups].map(([message, { at, count }]) => [
    new Date(at).toLocaleTimeString('en-GB'),
    count === 1 ? message : `${message} (${count} times)`,
  ]);
}
