// Equivalent of drive/wrk.lua for autocannon: `node autocannon.js URL CONNECTIONS SECONDS FILE BASIC
// once|again`.
import { readFileSync } from 'node:fs';
import autocannon from 'autocannon';
import { REVALIDATED, WITH_CREDENTIALS, WRITTEN } from '../targets.js';

const [url = '', connections = '', seconds = '', file = '', basic = '', how = ''] = process.argv.slice(2);
const targets = readFileSync(file, 'utf8').split('\n');
let at = 0;

function next(request: autocannon.Request): autocannon.Request {
  const line = targets[at++ % targets.length] ?? '/';
  const asIs = { ...request, method: 'GET', headers: {} };
  if (line.startsWith(WITH_CREDENTIALS)) {
    return { ...asIs, path: line.slice(1), headers: { authorization: basic } };
  }
  if (!line.startsWith(WRITTEN) && !line.startsWith(REVALIDATED)) return { ...asIs, path: line };
  const [path = '', body = ''] = line.slice(1).split(/ (.*)/);
  if (line.startsWith(REVALIDATED)) return { ...asIs, path, headers: { 'if-none-match': body } };
  const headers = { authorization: basic, 'content-type': 'application/json' };
  return { ...asIs, method: 'PUT', path, headers, body };
}

const { latency, duration, errors, timeouts, ...result } = await autocannon({
  url,
  connections: Number(connections),
  ...(how === 'once' ? { amount: targets.length } : { duration: Number(seconds) }),
  requests: [{ setupRequest: next }],
});

process.stdout.write(
  `${JSON.stringify({
    answers: result.requests.total,
    seconds: duration,
    badStatus: result['4xx'] + result['5xx'],
    broken: errors + timeouts,
    p50Ms: latency.p50,
    p99Ms: latency.p99,
  })}\n`,
);
