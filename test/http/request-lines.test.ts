import { createRequire } from 'node:module';
import type { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { createLogger } from '../../src/observe/logger.js';
import { configFrom } from '../support/load-config.js';
import { askTcp } from '../support/native-client.js';
import { startDemoServer } from '../support/demo.js';
import { startProxy } from '../support/proxy.js';

const demo = await startDemoServer();
const HANDLE = '21.T11998/DEMO';
const PATH = `/api/handles/${HANDLE}`;
const RULES = JSON.stringify([{ name: 'refused', match: { userAgent: 'greedy' }, answer: 429 }]);
const ENV = { UPSTREAM_URL: demo.url, NATIVE_TCP_PORT: '0', TRAFFIC_RULES: RULES };

const MISSES_AND_ERRORS = ['record 200 miss', 'record 404 miss', 'record 429 invalid', 'record 502 error'];
const HITS = [
  'record 200 hit',
  'record 200 hit',
  'record 304 hit',
  'redirect 302 hit',
  'redirect 302 hit',
  'native-tcp 1 hit',
  'native-tcp 1 hit',
];

async function start(env: Record<string, string>, create: typeof createLogger = createLogger) {
  const lines: Record<string, unknown>[] = [];
  const write = (text: string): void => {
    for (const line of text.trimEnd().split('\n')) lines.push(JSON.parse(line) as Record<string, unknown>);
  };
  const logger = create({ level: 'info', destination: { write } });
  const proxy = await startProxy({ ...ENV, ...env }, { logger });
  /** Closes the proxy, which flushes buffered hit lines, and returns all request lines. */
  const logged = async (): Promise<string[]> => {
    await proxy.close();
    return lines
      .filter(({ msg }) => msg === 'request')
      .map(({ interface: name, status, result }) => [name, status, result].join(' '))
      .sort();
  };
  return { proxy, logged, lines };
}

async function askEverything({ ask, tcpPort }: Awaited<ReturnType<typeof startProxy>>): Promise<void> {
  await ask(PATH);
  await ask(PATH);
  const { headers } = await ask(PATH);
  await ask(PATH, { headers: { 'If-None-Match': headers.etag ?? '' } });
  for (let times = 0; times < 2; times++) await ask(`/${HANDLE}`);
  for (let times = 0; times < 2; times++) await askTcp(tcpPort, HANDLE);
  await ask('/api/handles/21.T11998/nobody');
  await ask(PATH, { headers: { 'User-Agent': 'greedy' } });
  demo.fail('reset');
  await ask('/api/handles/21.T11998/page');
  demo.heal();
}

/** Creates a logger of another copy of pino, as a program that embeds the proxy has one. */
const createOther: typeof createLogger = ({ level, destination }) => {
  const require = createRequire(import.meta.url);
  for (const path of Object.keys(require.cache))
    if (path.includes('/node_modules/pino/')) Reflect.deleteProperty(require.cache, path);
  const other = require('pino') as typeof pino;
  return other({ level }, destination).child({ part: 'handles' });
};

describe('request log (log.requests)', () => {
  test.each([
    ['by default', {}, MISSES_AND_ERRORS],
    ['for misses-and-errors', { LOG_REQUESTS: 'misses-and-errors' }, MISSES_AND_ERRORS],
    ['for all', { LOG_REQUESTS: 'all' }, [...HITS, ...MISSES_AND_ERRORS]],
    ['for none', { LOG_REQUESTS: 'none' }, []],
  ])('contains the selected requests %s', async (_name, env, lines) => {
    const { proxy, logged } = await start(env);
    await askEverything(proxy);
    expect(await logged()).toEqual([...lines].sort());
  });

  test.each([
    ['with @', 'http://user:hunter2@host/'],
    ['with %40', 'http%3A%2F%2Fuser:hunter2%40host%2F'],
  ])('contains no password of a URL in a handle, %s', async (_name, suffix) => {
    const { proxy, logged, lines } = await start({ LOG_REQUESTS: 'all' });
    const handle = '21.T11998/http://user:hunter2@host/';
    demo.put(handle, [{ index: 1, type: 'URL', data: { format: 'string', value: 'https://example.org' } }]);
    for (let times = 0; times < 3; times++) await proxy.ask(`/api/handles/21.T11998/${suffix}`);
    expect(await logged()).toEqual(['record 200 hit', 'record 200 hit', 'record 200 miss']);
    const requests = lines.filter(({ msg }) => msg === 'request');
    expect(requests.map(({ handle: shown }) => shown)).toEqual(
      Array<string>(3).fill('21.T11998/http://***@host/'),
    );
    expect(JSON.stringify(requests)).not.toContain('hunter2');
  });

  test('contains the same lines with a logger of another copy of pino, and its fields', async () => {
    const { proxy, logged, lines } = await start({ LOG_REQUESTS: 'all' }, createOther);
    await askEverything(proxy);
    const handle = '21.T11998/http://user:hunter2@unknown/';
    await proxy.ask(`/api/handles/${encodeURIComponent(handle)}`);
    expect(await logged()).toEqual([...HITS, ...MISSES_AND_ERRORS, 'record 404 miss'].sort());
    const requests = lines.filter(({ msg }) => msg === 'request');
    expect(new Set(requests.map(({ part }) => part))).toEqual(new Set(['handles']));
    expect(JSON.stringify(requests)).not.toContain('hunter2');
  });

  test('applies a changed log.requests after a reload', async () => {
    const { proxy, logged } = await start({ LOG_REQUESTS: 'all' });
    await proxy.ask(PATH);
    await proxy.ask(PATH);
    proxy.app.reload(configFrom({ env: { ...ENV, LOG_REQUESTS: 'none' } }));
    await proxy.ask(PATH);
    await proxy.ask('/api/handles/21.T11998/nobody');
    expect(await logged()).toEqual(['record 200 hit', 'record 200 miss']);
  });
});
