// Large lists are read and written in steps, few at a time, and the records of a list have a ceiling.
import '../support/real-sockets.js';
import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { fixed } from '../support/fixed.js';
import { gate } from '../support/gate.js';
import { startHttpServer } from '../support/http-server.js';
import { startProxy } from '../support/proxy.js';
import { sliceBySteps } from '../support/slices.js';
import { askV2, read } from '../support/v2.js';

const PREFIX = '21.T11998';
const namesOf = (count: number): string[] =>
  Array.from({ length: count }, (_, at) => `${'N'.repeat(50)}${at}`);
const handlesOf = (names: readonly string[]): string[] => names.map((name) => `${PREFIX}/${name}`);

const listOf = (names: readonly string[]): string =>
  JSON.stringify({
    responseCode: 1,
    prefix: PREFIX,
    totalCount: String(names.length),
    handles: handlesOf(names),
  });

const recordOf = (handle: string, chars: number): string =>
  JSON.stringify({
    responseCode: 1,
    handle,
    values: [{ index: 1, type: 'NOTE', data: { format: 'string', value: 'x'.repeat(chars) }, ttl: 86_400 }],
  });

/** Starts a server that responds by path and query. */
const startServer = (respond: (target: string, res: ServerResponse) => void): Promise<string> =>
  startHttpServer((req, res) => {
    res.setHeader('Content-Type', 'application/json');
    respond(decodeURIComponent(req.url ?? ''), res);
  });

describe('a large list', () => {
  const NAMES = namesOf(20_000);
  /** Pieces of 16 KiB to parse, and groups of 500 names to write. */
  const [PARSED, WRITTEN] = [Math.floor(listOf(NAMES).length / (17 * 1024)), NAMES.length / 500];

  test('of a Handle server is charged for each step, in each format', async () => {
    const url = await startServer((_target, res) => res.end(listOf(NAMES)));
    const v2 = askV2((await startProxy({ UPSTREAM_URL: url })).url);
    const steps = sliceBySteps();
    const text = await v2(`/${PREFIX}?limit=0`);
    expect(text.text).toBe(`${NAMES.join('\n')}\n`);
    expect(steps()).toBeGreaterThanOrEqual(PARSED + WRITTEN);
    const json = await v2(`/${PREFIX}?limit=0`, { headers: { Accept: 'application/json' } });
    expect(json.text).toBe(JSON.stringify(NAMES));
    expect(json.headers['content-length']).toBe(String(json.text.length));
  });

  test('of a reverse lookup service is charged for each step', async () => {
    const url = await startServer((target, res) =>
      res.end(target.startsWith('/hrls/') ? JSON.stringify(handlesOf(NAMES)) : '{"responseCode":100}'),
    );
    const env = { UPSTREAM_URL: url, REVERSE_LOOKUP_URL: url, REVERSE_LOOKUP_FORWARD_LOGIN: 'true' };
    const v2 = askV2((await startProxy(env)).url);
    const steps = sliceBySteps();
    expect(read(await v2(`/${PREFIX}?URL=*&limit=0`))).toEqual(NAMES);
    expect(steps()).toBeGreaterThanOrEqual(PARSED + WRITTEN);
  });

  test('of a DSpace is parsed once for its pages, and written in steps', async () => {
    const url = await startServer((_target, res) => res.end(JSON.stringify(handlesOf(NAMES))));
    const upstream = { prefixes: PREFIX, kind: 'dspace', url: `${url}/server` };
    const { ask } = await startProxy({ UPSTREAMS: JSON.stringify([upstream]) });
    const steps = sliceBySteps();
    const stepsOf = async (query: string, handles: readonly string[]): Promise<number> => {
      const before = steps();
      expect(JSON.parse((await ask(`/api/handles?prefix=${PREFIX}${query}`)).text)).toMatchObject({
        handles,
      });
      return steps() - before;
    };
    const all = handlesOf(NAMES);
    expect(await stepsOf('&page=0&pageSize=2', all.slice(0, 2))).toBeGreaterThanOrEqual(PARSED + WRITTEN);
    expect(await stepsOf('&page=1&pageSize=2', all.slice(2, 4))).toBeLessThan(20);
    expect(await stepsOf('', all)).toBeGreaterThanOrEqual(WRITTEN);
  });

  test('is one of few of a client at a reverse lookup service, and others get Retry-After', async () => {
    const waiting: ServerResponse[] = [];
    const url = await startServer((_target, res) => waiting.push(res));
    const env = { UPSTREAM_URL: url, REVERSE_LOOKUP_URL: url, REVERSE_LOOKUP_FORWARD_LOGIN: 'true' };
    const short = fixed({ upstream: { queueTimeoutMs: 20 } });
    const v2 = askV2((await startProxy({ ...short, ...env })).url);
    const asked = Array.from({ length: 6 }, () => v2(`/${PREFIX}?URL=*`));
    await expect.poll(() => waiting.length).toBe(6);
    const { status, headers } = await v2(`/${PREFIX}?URL=*`);
    expect([status, headers['retry-after'], waiting.length]).toEqual([503, '1', 6]);
    for (const res of waiting) res.end('[]');
    for (const answer of await Promise.all(asked)) expect(answer.status).toBe(200);
  });

  test('is one of few of a client at a server', async () => {
    const waiting: ServerResponse[] = [];
    const url = await startServer((_target, res) => waiting.push(res));
    const v2 = askV2((await startProxy({ UPSTREAM_URL: url })).url);
    const asked = Array.from({ length: 20 }, () => v2(`/${PREFIX}?limit=0`));
    let received = 0;
    for (let left = asked.length; left > 0; left -= received) {
      // Three quarters of eight.
      received = Math.min(6, left);
      await expect.poll(() => waiting.length).toBe(received);
      for (const res of waiting.splice(0)) res.end(listOf(['A']));
    }
    for (const { status, text } of await Promise.all(asked)) expect([status, text]).toEqual([200, 'A\n']);
  });
});

describe('a list with Depth: 1', () => {
  const headers = { Depth: '1' };
  const isList = (target: string): boolean => target.includes('?prefix=');
  const handleIn = (target: string): string => target.slice('/api/handles/'.length);

  test('contains the records in the order of the list, without handles that do not exist', async () => {
    const names = ['GONE', 'C', 'B/x', 'ALSO-GONE', 'A'];
    const url = await startServer((target, res) => {
      if (isList(target)) res.end(listOf(names));
      else if (target.endsWith('GONE')) res.writeHead(404).end('{"responseCode":100}');
      else res.end(recordOf(handleIn(target), 1));
    });
    const { text, status } = await askV2((await startProxy({ UPSTREAM_URL: url })).url)(`/${PREFIX}`, {
      headers,
    });
    expect([status, Object.keys(JSON.parse(text) as object)]).toEqual([
      200,
      ['C', 'B%2Fx', 'A'].map((name) => `/handles/${PREFIX}/${name}`),
    ]);
  });

  test('is an empty object without records', async () => {
    const url = await startServer((_target, res) => res.end(listOf([])));
    const { text } = await askV2((await startProxy({ UPSTREAM_URL: url })).url)(`/${PREFIX}`, { headers });
    expect(text).toBe('{}');
  });

  test('is refused as soon as its records exceed the ceiling, and asks for a smaller limit', async () => {
    let reads = 0;
    const names = namesOf(100);
    const url = await startServer((target, res) => {
      if (!isList(target)) reads++;
      res.end(isList(target) ? listOf(names) : recordOf(handleIn(target), 10_000));
    });
    const env = fixed({ v2: { search: { maxBytes: 100_000, concurrency: 4 } } });
    const answer = await askV2((await startProxy({ ...env, UPSTREAM_URL: url })).url)(`/${PREFIX}`, {
      headers,
    });
    expect([answer.status, read(answer)]).toMatchObject([501, { code: 'V2_NOT_SUPPORTED' }]);
    expect(answer.text).toContain('give a smaller limit: the records have more than 100000 bytes');
    // A value of 10,000 characters is shown as text and in Base64; four reads are in flight.
    expect(reads).toBeLessThanOrEqual(5 + 4);
  });

  test('counts its records as an unread response while others arrive', async () => {
    const hanging = gate();
    const url = await startServer((target, res) => {
      if (isList(target)) res.end(listOf(['LARGE', 'SLOW']));
      else if (target.endsWith('LARGE')) res.end(recordOf(handleIn(target), 40_000));
      else hanging.open();
    });
    const env = fixed({ http: { maxUnsentResponseBytes: 100_000 } });
    const v2 = askV2((await startProxy({ ...env, UPSTREAM_URL: url })).url);
    const first = v2(`/${PREFIX}`, { headers });
    const closed = expect(first).rejects.toThrow();
    await hanging.opened;
    // The second list holds as much, and the first has not progressed.
    v2(`/${PREFIX}`, { headers }).catch(() => undefined);
    await closed;
  });
});
