// All of one message on the page.
import { draw } from './chart.js';
import { judgeAll, judgeProcesses, judgeRedis, judgeServer, sum } from './judge.js';
import { bytes, counted, joined, many, percent, rate, span, time } from './numbers.js';
import { put, putFigure, putRows, putState, putWord } from './places.js';

function drawAll(history) {
  const of = (name) => history.map((point) => point[name]);
  draw('hits', of('hitRatio'), { most: 1, show: percent });
  draw('rate', of('answers'), { show: (value) => [counted(value)] });
  draw('latency', of('p99Ms'), { show: time });
  const marks = history.flatMap(({ upstreamFailures }, at) => (upstreamFailures > 0 ? [at] : []));
  draw('upstream', of('upstreamP99Ms'), { show: time, marks });
}

export function show(stats) {
  const { requests, upstream } = stats;
  putFigure('hits', percent(requests.hitRatioLastMinute), sinceStart(requests));
  putFigure('rate', [rate(requests.perSecond)], `${counted(requests.total)} in ${span(stats.uptimeSeconds)}`);
  putFigure('latency', time(requests.latencyMs.p99), others(requests.latencyMs));
  const turns = `${upstream.running} running, ${upstream.waiting} waiting`;
  const asked = `${rate(upstream.perSecond)} asked a second, ${turns}`;
  putFigure('upstream', time(upstream.latencyMs.p99), joined([others(upstream.latencyMs), asked], '\n'));
  showParts(stats);
  const rows = (list) => list.map(({ name, count }) => [counted(count), name]);
  putRows('handles', rows(stats.topHandles), 'Nothing was asked for.');
  putRows('misses', rows(stats.topMisses), 'Nothing was missed.');
  putRows('errors', groupErrors(stats.recentErrors), 'None.');
  drawAll(stats.history);
  put('connection', 'Live');
}

const sinceStart = ({ hitRatio }) =>
  hitRatio === null ? 'nothing was asked yet' : `${joined(percent(hitRatio))} since the start`;

const others = ({ p50, p95 }) =>
  p50 === null ? 'nothing in the last minute' : `50 %: ${joined(time(p50))}, 95 %: ${joined(time(p95))}`;

function showParts(stats) {
  const { servers } = stats.upstream;
  const [server, redis, processes] = [
    judgeServer(stats),
    judgeRedis(stats.redis),
    judgeProcesses(stats.workers),
  ];
  const breakers = servers.map(({ server, breaker }) => `breaker ${breaker}: ${new URL(server).host}`);
  putWord('server', server, [...breakers, server.told].join('\n'));
  putWord('redis', redis);
  const kept = stats.memory.map(({ store, entries, bytes: size }) => {
    return `${many(entries, store === 'found' ? 'record' : 'unknown handle')}, ${joined(bytes(size))}`;
  });
  putFigure('memory', bytes(sum(stats.workers.map(({ rssBytes }) => rssBytes))), kept.join('\n'));
  putWord('workers', processes);
  putState(...judgeAll(server, redis, processes));
}

/** The same error again and again is one row. */
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
