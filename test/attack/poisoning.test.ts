// Cache poisoning: whatever a client sends, the next reader gets the response that a fresh proxy returns.
import '../support/real-sockets.js';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fc, test } from '../support/property.js';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import type { Asked } from '../support/ask.js';
import { type Proxy, startProxy } from '../support/proxy.js';
import { rounds } from '../support/property-rounds.js';

const EVIL = 'evil.example';
const junkText = fc.oneof(
  fc.constantFrom(
    EVIL,
    `https://${EVIL}/`,
    '*',
    'null',
    '',
    '"x"',
    'text/html',
    'gzip',
    'identity;q=0',
    'true',
  ),
  fc.string({ maxLength: 20 }).map((text) => text.replace(/[^\x20-\x7e]/g, '')),
);
const junkHeaders = fc.dictionary(
  fc.constantFrom(
    ...[
      'Host',
      'X-Forwarded-Host',
      'X-Forwarded-Proto',
      'X-Forwarded-Prefix',
      'X-Forwarded-For',
      'Forwarded',
    ],
    ...['X-Host', 'X-Original-URL', 'X-Rewrite-URL', 'X-HTTP-Method-Override', 'Origin', 'Referer', 'Cookie'],
    ...['Accept', 'Accept-Language', 'Accept-Encoding', 'Accept-Charset', 'User-Agent', 'Range', 'Via', 'TE'],
    ...[
      'If-None-Match',
      'If-Modified-Since',
      'If-Match',
      'Cache-Control',
      'Pragma',
      'Max-Forwards',
      'Prefer',
    ],
  ),
  junkText,
  { maxKeys: 5 },
);
const parameter = fc.tuple(
  fc.constantFrom(
    'index',
    'type',
    'pretty',
    'callback',
    'INDEX',
    'noredirect',
    'urlappend',
    'locatt',
    '_',
    'utm',
  ),
  fc.oneof(
    junkText,
    fc.constantFrom('1', '2', 'URL', 'EMAIL', '%0d%0aSet-Cookie:a=b', '<script>', '__proto__'),
  ),
);
const queries = fc
  .array(parameter, { maxLength: 4 })
  .map((pairs) => pairs.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&'));
const spellings = fc.constantFrom(
  (path: string) => path,
  (path: string) => path.toUpperCase().replace('/API/HANDLES', '/api/handles').replace('/API/V2', '/api/v2'),
  (path: string) => path.replace('poison', '%70%6Fison'),
  (path: string) => `http://${EVIL}${path}`,
);
const junk = fc.record({
  family: fc.constantFrom('/api/handles/', '/', '/api/v2/handles/'),
  method: fc.constantFrom('GET', 'GET', 'GET', 'HEAD', 'OPTIONS', 'POST', 'TRACE'),
  headers: junkHeaders,
  query: queries,
  spell: spellings,
  credentials: fc.constantFrom({}, {}, {}, { Authorization: 'Basic eDp5' }),
});

const without = (headers: Record<string, unknown>, names: string[]): Record<string, unknown> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !names.includes(name)));

/**
 * Starts a server whose records echo the request headers. A request with credentials or publicOnly=false
 * also gets a private value.
 */
function startEcho(): Promise<{ url: string; close: () => void }> {
  const server = createServer((req, res) => {
    const handle = decodeURIComponent(/\/api\/handles\/([^?]*)/.exec(req.url ?? '')?.[1] ?? '');
    const isTrusted = req.headers.authorization !== undefined || /publicOnly=false/i.test(req.url ?? '');
    // Omits Host, which names this server, and Via, which differs between the two proxies.
    const headers = without(req.headers, ['host', 'via']);
    const values = [
      { index: 1, type: 'URL', data: { format: 'string', value: 'https://example.org/clean' }, ttl: 86400 },
      { index: 2, type: 'ECHO', data: { format: 'string', value: JSON.stringify(headers) }, ttl: 86400 },
      ...(isTrusted ? [{ index: 3, type: 'SECRET', data: { format: 'string', value: 'private' } }] : []),
    ];
    res.setHeader('Content-Type', 'application/json;charset=UTF-8');
    res.end(JSON.stringify({ responseCode: 1, handle, values }));
  });
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      resolve({ url, close: () => server.close() });
    });
  });
}

let upstream: { url: string; close: () => void };
let touched: Proxy;
let untouched: Proxy;
beforeAll(async () => {
  upstream = await startEcho();
});
afterAll(() => {
  upstream.close();
});

/** Returns the response without times, cache state and the URL of the proxy. */
function told({ status, headers, text }: Asked, url: string): unknown {
  const shown = without(headers, ['cache-status', 'date', 'age']);
  return { status, headers: shown, text: text.replaceAll(url, 'PROXY') };
}

let count = 0;
const start = async (): Promise<void> => {
  const env = { UPSTREAM_URL: upstream.url, V2_ANONYMOUS_READ: 'true' };
  touched = await startProxy(env);
  untouched = await startProxy(env);
};

describe('cache poisoning', () => {
  test('cannot change the response to the next reader, even after many attacks', async () => {
    await start();
    const isUntouched = fc.asyncProperty(fc.array(junk, { minLength: 1, maxLength: 4 }), async (attacks) => {
      const handle = `21.T11998/poison-${++count}`;
      for (const { family, method, headers, query, spell, credentials } of attacks) {
        const target = `${spell(family + handle)}${query === '' ? '' : `?${query}`}`;
        await touched.ask(target, { method, headers: { ...headers, ...credentials } }).catch(() => undefined);
      }
      const clean: [target: string, headers: Record<string, string>][] = [
        [`/api/handles/${handle}`, {}],
        [`/api/handles/${handle}?index=1`, {}],
        [`/${handle}`, { Accept: 'text/html' }],
        [`/${handle}`, {}],
        [`/${handle}?noredirect`, { Accept: 'text/html' }],
        [`/api/v2/handles/${handle}`, { Accept: 'application/json' }],
      ];
      for (const [target, headers] of clean) {
        const given = { headers: { Host: 'proxy.example', ...headers } };
        const [after, never] = [await touched.ask(target, given), await untouched.ask(target, given)];
        expect(told(after, touched.url), target).toEqual(told(never, untouched.url));
        expect(JSON.stringify([after.headers, after.text]), target).not.toMatch(/evil\.example|"private"/);
      }
    });
    await fc.assert(isUntouched, { numRuns: rounds(60), endOnFailure: true });
  });
});
