import { describe, expect, test } from 'vitest';
import { createLogger } from '../../src/observe/logger.js';
import { textValue } from '../../src/dev-server/seed.js';
import { basic, startDemoServer } from '../support/demo.js';
import { startHttpServer } from '../support/http-server.js';
import { startProxy } from '../support/proxy.js';
import { HANDLE } from '../support/upstream.js';

const demo = await startDemoServer();
/** Simulates a Handle server on plain HTTP, which ignores logins. */
const plain = await demo.listenInsecurely(0);
const MINUTE_MS = 60_000;

const BODY = JSON.stringify([textValue(1, 'URL', 'https://example.org/new')]);
const HEADERS = {
  Authorization: basic('300:21.T11998/USER01', 'password'),
  'Content-Type': 'application/json',
};
const V2_BODY = JSON.stringify([{ idx: 1, type: 'URL', parsed_data: 'https://example.org/new' }]);

async function start(upstreamUrl: string, env: Record<string, string> = { UPSTREAM_URL: upstreamUrl }) {
  const lines: string[] = [];
  const logger = createLogger({ level: 'info', destination: { write: (line) => void lines.push(line) } });
  const proxy = await startProxy(env, { logger });
  const send = async (path: string, body: string, headers: Record<string, string> = HEADERS) => {
    const response = await fetch(proxy.url + path, { method: 'PUT', headers, body });
    return { status: response.status, text: await response.text() };
  };
  const warnings = () =>
    lines.map((line) => JSON.parse(line) as Record<string, unknown>).filter(({ level }) => level === 'warn');
  return { ...proxy, send, warnings };
}

const WARNING = {
  msg: 'the Handle server ignored the login of a write',
  upstream: plain.url,
  remedy: 'set upstream.url to an https address',
};

describe('warning about logins ignored over plain HTTP', () => {
  test('is logged at most once per minute when writes with a login fail with code 402', async () => {
    const { send, warnings, pass } = await start(plain.url);
    expect(warnings()).toEqual([]);
    const refused = { status: 403, text: '{"responseCode":402,"handle":"21.T11998/demo"}' };
    expect(await send('/api/handles/21.T11998/demo', BODY)).toEqual(refused);
    expect(await send('/api/handles/21.T11998/demo', BODY)).toEqual(refused);
    expect(warnings()).toEqual([expect.objectContaining(WARNING)]);
    pass(MINUTE_MS);
    expect(await send('/api/handles/21.T11998/demo', BODY)).toEqual(refused);
    expect(warnings()).toHaveLength(2);
  });

  test('names the key of the server among several', async () => {
    const UPSTREAMS = JSON.stringify([
      { prefixes: ['*'], url: demo.url, readOnly: true },
      { prefixes: ['21.T11998'], url: plain.url },
    ]);
    const { send, warnings } = await start(plain.url, { UPSTREAMS });
    expect((await send('/api/handles/21.T11998/demo', BODY)).status).toBe(403);
    const remedy = 'set upstreams.1.url to an https address';
    expect(warnings()).toContainEqual(expect.objectContaining({ ...WARNING, remedy }));
  });

  test('is logged for an ePIC v2 write', async () => {
    const { send, warnings } = await start(plain.url);
    expect(await send('/api/v2/handles/21.T11998/demo', V2_BODY)).toMatchObject({ status: 502 });
    expect(warnings()).toEqual([expect.objectContaining(WARNING)]);
  });

  test('is not logged for a write without a login', async () => {
    const { send, warnings } = await start(plain.url);
    const answer = await send('/api/handles/21.T11998/demo', BODY, { 'Content-Type': 'application/json' });
    expect(answer).toMatchObject({ status: 403 });
    expect(warnings()).toEqual([]);
  });

  test('is not logged for an HTTP port that accepts logins', async () => {
    const { send, warnings } = await start(demo.url);
    expect(await send('/api/handles/21.T11998/written', BODY)).toMatchObject({ status: 201 });
    const other = { ...HEADERS, Authorization: basic('300:21.T11998/USER02', 'secret2') };
    expect(await send('/api/handles/21.T11998/demo', BODY, other)).toMatchObject({ status: 403 });
    expect(warnings()).toEqual([]);
  });
});

test('a refusal of a write without a login is forwarded as it comes, even if it is cut off', async () => {
  const upstream = await startHttpServer((_req, res) => {
    res.setHeader('Content-Type', 'application/json');
    res.writeHead(403, { 'Content-Length': 51 }).write('{"responseCode"', () => res.destroy());
  });
  const { url } = await startProxy({ UPSTREAM_URL: upstream });
  const headers = { 'Content-Type': 'application/json' };
  const response = await fetch(`${url}/api/handles/${HANDLE}`, { method: 'PUT', headers, body: BODY });
  expect(response.status).toBe(403);
  await expect(response.text()).rejects.toThrow('terminated');
});
