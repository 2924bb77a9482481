// Process survival: no upstream response, Redis entry or failed request ends the process.
import { once } from 'node:events';
import { type RequestListener, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, describe, expect, test } from 'vitest';
import { decodeEntry, encodeEntry, originOf } from '../../src/cache/entry.js';
import { toBytes } from '../../src/handle/bytes.js';
import { upperAscii } from '../../src/handle/handle.js';
import { ask } from '../support/ask.js';
import { type BuiltProxy, startConnectedProxy, useBuiltProxies } from '../support/built-proxy.js';
import { fixed } from '../support/fixed.js';
import { exchangeOn, openSocket } from '../support/raw-socket.js';
import { describeWithRedis } from '../support/redis-server.js';
import { useRedis } from '../support/use-redis.js';

const GOOD = '21.T11998/good';

/** Returns arrays nested to this depth. */
const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);

/** Returns a record whose JSON is nested to this depth. Four levels surround the value. */
const recordOf = (handle: string, levels: number): string =>
  `{"responseCode":1,"handle":"${handle}","values":[{"index":1,"type":"URL","data":{"format":"x","value":${nested(levels - 4)}},"ttl":86400}]}`;

/** Selects the response by the handle suffix: `…/5000` returns a record nested 5,000 levels deep. */
const answer: RequestListener = ({ url = '' }, response) => {
  const handle = decodeURIComponent(/\/api\/handles\/([^?]*)/.exec(url)?.[1] ?? '');
  const [, kind, levels] = /\/(refusal-)?(\d+)$/.exec(handle) ?? [];
  const headers = { 'Content-Type': 'application/json' };
  if (kind === undefined) response.writeHead(200, headers).end(recordOf(handle, Number(levels ?? 10)));
  else response.writeHead(400, headers).end(`{"responseCode":301,"message":${nested(Number(levels) - 1)}}`);
};

const upstream = createServer(answer).listen(0, '127.0.0.1');
await once(upstream, 'listening');
afterAll(() => {
  upstream.closeAllConnections();
  upstream.close();
});
const UPSTREAM_URL = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;

const started = useBuiltProxies();
const BREAKER = { upstream: { breaker: { failures: 10_000 } } };
const start = (env: Record<string, string> = {}): Promise<BuiltProxy> =>
  started({ UPSTREAM_URL, ...fixed(BREAKER), V2_ANONYMOUS_READ: 'true', ...env });

const errorsOf = (proxy: BuiltProxy): unknown[] => proxy.logs().filter(({ level }) => level === 'error');

async function internalErrorsOf({ adminUrl }: BuiltProxy): Promise<number> {
  const { text } = await ask(adminUrl, '/metrics');
  return Number(/^handle_proxy_internal_errors_total (\d+)$/m.exec(text)?.[1]);
}

async function expectGoodAnswer(proxy: BuiltProxy): Promise<void> {
  expect((await ask(proxy.url, `/api/handles/${GOOD}`)).status).toBe(200);
  expect(proxy.logs().filter(({ level }) => level === 'fatal')).toEqual([]);
}

/** Returns every route that reads the record. */
const routesOf = (handle: string): string[] => [
  `/api/handles/${handle}`,
  `/api/handles/${handle}?pretty`,
  `/api/handles/${handle}?pretty&callback=f`,
  `/api/handles/${handle}?index=1&type=URL`,
  `/${handle}`,
  `/${handle}?noredirect`,
  `/${handle}?action=showurls`,
  `/api/v2/handles/${handle}`,
];

describe('built program', () => {
  describe('with a record nested more than 64 levels deep', () => {
    test.each([65, 5000, 1_000_000])('returns 502 on every route (%i levels)', async (levels) => {
      const proxy = await start();
      for (const path of [...routesOf(`21.T1/${levels}`), ...routesOf(`21.T1/${levels}`)]) {
        expect((await ask(proxy.url, path)).status, path).toBe(502);
      }
      await expect.poll(proxy.output).toContain('JSON nested deeper than 64 levels');
      await expectGoodAnswer(proxy);
    });
  });

  test('returns a record nested 64 levels deep on every route', async () => {
    const proxy = await start();
    for (const path of routesOf('21.T1/64')) expect((await ask(proxy.url, path)).status, path).toBe(200);
    await expectGoodAnswer(proxy);
  });

  test('continues to serve after an error response nested to any depth', async () => {
    const proxy = await start();
    for (const levels of [64, 65, 100_000]) {
      const { status } = await ask(proxy.url, `/api/handles/21.T1/refusal-${levels}`);
      expect(status).toBe(levels > 64 ? 502 : 400);
    }
    await expectGoodAnswer(proxy);
  });

  describeWithRedis('with an invalid entry in Redis', () => {
    const redis = useRedis();
    const entries: [what: string, values: string][] = [
      [
        '5,000 levels',
        `[${recordOf(GOOD, 5000)
          .slice(0, -2)
          .replace(/^.*?\[/, '')}]`,
      ],
      ['no JSON', '[{"index":1'],
      ['no list', '{"index":1}'],
      ['no values', '[null,1,"x"]'],
      ['values without members', '[{}]'],
      [
        'members of other kinds',
        '[{"index":{},"type":{},"data":7,"permissions":{},"ttl":{},"references":7}]',
      ],
    ];
    const handles = entries.map((_, at) => `${GOOD}-${at}`);
    const connected = useBuiltProxies(startConnectedProxy);
    const env = (): Record<string, string> => ({
      REDIS_URL: redis.url,
      UPSTREAM_URL,
      V2_ANONYMOUS_READ: 'true',
    });

    async function forge(name: string): Promise<void> {
      const stored = (await redis.client.getBuffer(name))!;
      const at = handles.findIndex((handle) => name.endsWith(upperAscii(handle)));
      const key = upperAscii(handles[at]!);
      const forged = { ...decodeEntry(key, stored)!, values: toBytes(entries[at]![1]) };
      await redis.client.set(name, encodeEntry(key, forged, originOf(stored)));
    }

    /** Lets a first instance store the records, and replaces what it has stored. */
    async function forgeAll(): Promise<void> {
      const first = await startConnectedProxy(env());
      for (const handle of handles) await ask(first.url, `/api/handles/${handle}`);
      await expect.poll(() => redis.client.keys('*:entry:*')).toHaveLength(handles.length);
      await first.stop();
      for (const name of await redis.client.keys('*:entry:*')) await forge(name);
    }

    let forged: Promise<void> | undefined;

    test.each(entries)('loads the record from the Handle server (%s)', async (what) => {
      await (forged ??= forgeAll());
      const proxy = await connected(env());
      const handle = handles[entries.findIndex(([each]) => each === what)]!;
      for (const route of [...routesOf(handle), ...routesOf(handle)]) {
        expect((await ask(proxy.url, route)).status, route).toBeLessThan(400);
      }
      expect(proxy.logs().filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([]);
    });
  });

  /** Preloaded code that throws on the query `throw`, and when JSON about the handle `throw` is written. */
  const PRELOADED = `
  const { URLSearchParams: Real } = globalThis;
  globalThis.URLSearchParams = class extends Real {
    constructor(query) {
      super(query);
      if (String(query).includes('throw')) throw new Error('thrown on purpose');
    }
  };
  const { stringify } = JSON;
  JSON.stringify = (...given) => {
    if (given[0]?.handle === 'throw') throw new Error('thrown on purpose');
    return stringify(...given);
  };
`;
  const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(PRELOADED)}`;

  describe('exception during a request', () => {
    test.each([
      ['the fast path', {}, `/api/handles/${GOOD}?throw`],
      [
        'Express',
        fixed({ ...BREAKER, http: { responseCache: { maxEntries: 0 } } }),
        `/api/handles/${GOOD}?throw`,
      ],
      ['a redirect', {}, `/${GOOD}?throw`],
      ['ePIC v2', {}, `/api/v2/handles/${GOOD}?throw`],
      [
        'a traced request',
        { TRACING_ENDPOINT: 'http://127.0.0.1:9/v1/traces' },
        `/api/handles/${GOOD}?throw`,
      ],
      [
        'a limited request',
        { TRAFFIC_RULES: '[{name: all, limit: {perMinute: 1000}}]' },
        `/api/handles/${GOOD}?throw`,
      ],
    ])('is logged and causes a 500 in %s, and the connection stays open', async (_where, env, path) => {
      const proxy = await start({ NODE_OPTIONS, ...env });
      await ask(proxy.url, `/api/handles/${GOOD}`);
      const before = errorsOf(proxy).length;
      const socket = await openSocket(proxy.url);
      for (const count of [before + 1, before + 2]) {
        const { status, body } = await exchangeOn(socket, `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
        expect([status, body]).toEqual([500, expect.stringContaining('Unexpected error in the proxy')]);
        await expect.poll(() => errorsOf(proxy)).toHaveLength(count);
        expect(await internalErrorsOf(proxy)).toBe(count);
      }
      expect(errorsOf(proxy)[before]).toMatchObject({ err: { message: 'thrown on purpose' } });
      const good = `GET /api/handles/${GOOD} HTTP/1.1\r\nHost: x\r\n\r\n`;
      expect((await exchangeOn(socket, good)).status).toBe(200);
      await expectGoodAnswer(proxy);
    });

    test('is logged and causes a 500 in the admin listener', async () => {
      const proxy = await start({ NODE_OPTIONS });
      const before = errorsOf(proxy).length;
      expect((await ask(proxy.adminUrl, '/cache?handle=throw')).status).toBe(500);
      await expect
        .poll(() => errorsOf(proxy).slice(before))
        .toMatchObject([{ err: { message: 'thrown on purpose' } }]);
      expect(await internalErrorsOf(proxy)).toBe(before + 1);
      await expectGoodAnswer(proxy);
    });
  });
});
