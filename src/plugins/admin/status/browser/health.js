// Computes each part's health: a level (good, warn, bad), a label and a detail.
import { counted, plural } from './format.js';

/** Event-loop delay that clients notice. */
const MAX_DELAY_SECONDS = 0.25;

export function serverHealth({ upstream, lastMinute }) {
  const { servers } = upstream;
  const open = servers.filter(({ breaker }) => breaker === 'open').length;
  const isFailing = servers.some(({ state }) => state === 'failing');
  const { requests, failures: failed } = lastMinute.upstream;
  const detail = `${counted(failed)} of ${plural(requests, 'request')} failed in the last minute`;
  if (servers.length > 0 && open === servers.length) return { level: 'bad', word: 'Circuit open', detail };
  if (requests > 0 && failed * 2 >= requests) return { level: 'bad', word: 'Failing', detail };
  if (failed > 0 || open > 0 || isFailing) return { level: 'warn', word: 'Degraded', detail };
  return { level: 'good', word: requests > 0 ? 'Up' : 'Idle', detail };
}

export function redisHealth({ state }) {
  if (state === 'up') return { level: 'good', word: 'Connected', detail: 'shared with other instances' };
  if (state === 'disabled') return { word: 'Not used', detail: 'this instance has its own cache' };
  return { level: 'warn', word: 'Unavailable', detail: 'serving from memory and the Handle server' };
}

export function processHealth({ eventLoopDelaySeconds }) {
  const detail = `event loop delay up to ${Math.round(eventLoopDelaySeconds * 1000)} ms`;
  return eventLoopDelaySeconds >= MAX_DELAY_SECONDS
    ? { level: 'warn', word: 'Overloaded', detail }
    : { level: 'good', word: 'Up', detail };
}

/** Returns the level and text of the most severe problem. */
export function overallHealth(server, redis, process) {
  if (server.level === 'bad') return ['bad', 'Handle server failing: serving stale records'];
  if (server.level === 'warn') return ['warn', 'Handle server degraded'];
  if (redis.level === 'warn') return ['warn', 'Redis unavailable'];
  if (process.level === 'warn') return ['warn', 'Proxy overloaded'];
  return ['good', 'Healthy'];
}
