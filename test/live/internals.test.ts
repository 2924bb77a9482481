// Undocumented behaviour of Node, V8, Express and undici that the built program relies on.
import { readFileSync, readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { ask } from '../support/ask.js';
import { ROOT, startBuiltProxy, startProgram } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';

const demo = await startDemoServer();
const PATH = '/api/handles/21.T11998/page';

describe('Node, V8, Express and undici', () => {
  test('accept the V8 flags set at start without a warning on stderr', async () => {
    const proxy = await startBuiltProxy({ UPSTREAM_URL: demo.url });
    expect(readFileSync(`${ROOT}/src/app/run.ts`, 'utf8')).toContain('setFlagsFromString(HEAP_GROWTH)');
    expect(proxy.output().split('\n').slice(0, -1).map(parses)).not.toContain(false);
  });

  function parses(line: string): boolean {
    try {
      JSON.parse(line);
      return true;
    } catch {
      return false;
    }
  }

  /** Embeds the proxy with a stopped clock, and prints how many response heads Node builds. */
  const EMBEDDED = `
import { ServerResponse } from 'node:http';
import { createApp } from './dist/app.js';
import { loadConfig } from './dist/config.js';
import { createLogger } from './dist/logger.js';
import { createMetrics } from './dist/metrics.js';
import { createHttpServer } from './dist/server.js';
const { writeHead } = ServerResponse.prototype;
let heads = 0;
ServerResponse.prototype.writeHead = function (...given) {
  heads++;
  return writeHead.apply(this, given);
};
const config = loadConfig({ env: process.env, readFile: () => '' });
const logger = createLogger({ level: 'silent' });
const now = () => 1_800_000_000_000;
const app = await createApp({ config, logger, metrics: createMetrics(), clock: { now, wall: now } });
const server = createHttpServer(app.handler, config, app.context, app.connections);
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const url = 'http://127.0.0.1:' + server.address().port + '${PATH}';
const seen = [];
for (let times = 0; times < 4; times++) {
  heads = 0;
  const response = await fetch(url);
  const { date, age, 'cache-status': status, ...headers } = Object.fromEntries(response.headers);
  seen.push({ heads, headers, text: await response.text() });
}
console.log(JSON.stringify(seen));
process.exit();
`;

  test('send the head that a hit stores in _header, built once per second', async () => {
    const { exited, stdout, stderr } = startProgram(['--input-type=module', '--eval', EMBEDDED], {
      UPSTREAM_URL: demo.url,
    });
    await exited;
    expect(stderr()).toBe('');
    const seen = JSON.parse(stdout()) as { heads: number; headers: unknown; text: string }[];
    expect(seen.slice(-2).map(({ heads }) => heads)).toEqual([0, 0]);
    const [, first, ...others] = seen;
    for (const { headers, text } of others) expect([headers, text]).toEqual([first?.headers, first?.text]);
  });

  test('load and serve without the parts left out of the bundle', async () => {
    const proxy = await startBuiltProxy({ UPSTREAM_URL: demo.url });
    const typeOf = async (base: string, path: string): Promise<unknown[]> => {
      const { status, headers } = await ask(base, path);
      return [status, headers['content-type']?.split(';')[0]];
    };
    expect(await typeOf(proxy.url, PATH)).toEqual([200, 'application/json']);
    expect(await typeOf(proxy.adminUrl, '/stats')).toEqual([200, 'application/json']);
    expect(await typeOf(proxy.adminUrl, '/metrics')).toEqual([200, 'text/plain']);
    expect(await typeOf(proxy.adminUrl, '/')).toEqual([200, 'text/html']);
    expect(await typeOf(proxy.adminUrl, '/openapi')).toEqual([200, 'text/html']);
    expect(await typeOf(proxy.adminUrl, '/nothing')).toEqual([404, 'application/problem+json']);
    for (const unused of UNUSED) expect(sourcesThatUse(unused)).toEqual([]);
  });

  test('count the processor time, which the bundle does without exemplars', async () => {
    const proxy = await startBuiltProxy({ UPSTREAM_URL: demo.url });
    expect((await ask(proxy.adminUrl, '/metrics')).text).toMatch(/^process_cpu_seconds_total [\d.]+$/m);
  });
});

/** What src would use of the modules that config/build.js leaves out. */
const UNUSED = [
  // Express: bodies, nested query parameters, files, views, cookies, downloads.
  /express\.(?:json|raw|text|urlencoded|static)\b|query parser|\.(?:sendFile|download|attachment|render|cookie)\(/,
  // http-proxy-middleware: filters, which may have wildcards.
  /pathFilter/,
  // undici: HTTP/2, and what `dispatch` and `request` do not need.
  /allowH2|useH2c|\.(?:pipeline|upgrade|connect)\(\{ path/,
  // pino: its own buffer, threads, redaction by paths.
  /pino\.(?:destination|transport|multistream)|\bredact:/,
  // prom-client: other metrics, exemplars.
  /\bSummary\b.*prom-client|Pushgateway|AggregatorRegistry|enableExemplars/,
];

const sourcesThatUse = (pattern: RegExp): string[] =>
  readdirSync(`${ROOT}/src`, { recursive: true, encoding: 'utf8' }).filter(
    (path) => path.endsWith('.ts') && pattern.test(readFileSync(`${ROOT}/src/${path}`, 'utf8')),
  );
