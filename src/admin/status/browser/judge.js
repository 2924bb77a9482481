// What the figures mean: each with a level (good, warn, bad) and a word for it.
import { counted, many } from './numbers.js';

/** From here on callers notice. */
const LATE_MS = 250;

export const sum = (list) => list.reduce((all, one) => all + one, 0);

export function judgeServer({ upstream, history }) {
  const { servers } = upstream;
  const open = servers.filter(({ breaker }) => breaker === 'open').length;
  const failed = sum(history.map((point) => point.upstreamFailures));
  const asked = sum(history.map((point) => point.upstreamAnswers));
  const told = `${counted(failed)} of ${many(asked, 'question')} failed in the last minute`;
  if (servers.length > 0 && open === servers.length) return { level: 'bad', word: 'Resting', told };
  if (asked > 0 && failed * 2 >= asked) return { level: 'bad', word: 'Failing', told };
  if (failed > 0 || open > 0) return { level: 'warn', word: 'Unsteady', told };
  return { level: 'good', word: asked > 0 ? 'Answers' : 'Not asked', told };
}

export function judgeRedis({ state }) {
  if (state === 'up') return { level: 'good', word: 'Connected', told: 'shared with other instances' };
  if (state === 'unused') return { word: 'Not used', told: 'this instance caches for itself' };
  return { level: 'warn', word: 'Away', told: 'answering from memory and the Handle server' };
}

export function judgeProcesses(workers) {
  const late = Math.round(Math.max(0, ...workers.map(({ eventLoopDelayMs }) => eventLoopDelayMs)));
  const told = `event loop at most ${late} ms late`;
  if (workers.length === 0) return { level: 'bad', word: 'None', told: 'no worker answers' };
  return late >= LATE_MS
    ? { level: 'warn', word: `${workers.length} busy`, told }
    : { level: 'good', word: `${workers.length} up`, told };
}

/** The worst there is, in one line. */
export function judgeAll(server, redis, processes) {
  if (processes.level === 'bad') return ['bad', 'No process answers'];
  if (server.level === 'bad') return ['bad', 'The Handle server fails: what is kept stands in'];
  if (server.level === 'warn') return ['warn', 'The Handle server fails at times'];
  if (redis.level === 'warn') return ['warn', 'Redis is away'];
  if (processes.level === 'warn') return ['warn', 'The proxy is very busy'];
  return ['good', 'All is well'];
}
