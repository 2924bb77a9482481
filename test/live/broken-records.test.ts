// Records that the Handle server cannot return: repeated requests for them do not affect other reads.
import type { RequestListener, ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { ask } from '../support/ask.js';
import { startBuiltProxy } from '../support/built-proxy.js';
import { listenHttp } from './upstream-loopback.js';
import { fixed } from '../support/fixed.js';

const BROKEN = Array.from({ length: 16 }, (_, at) => `21.T11998/broken-${at}`);
const GOOD = 150;
const READERS = 4;

const JSON_TYPE = { 'Content-Type': 'application/json' };

const send = (response: ServerResponse, status: number, body: unknown): unknown =>
  response.writeHead(status, JSON_TYPE).end(JSON.stringify(body));

const BREAK: Record<string, (response: ServerResponse) => unknown> = {
  'a 500': (response) => send(response, 500, { responseCode: 2, message: 'Error' }),
  'no record': (response) => response.writeHead(200, JSON_TYPE).end('rubbish'),
  'a cut connection': (response) => response.socket?.destroy(),
  'a 502 from a gateway': (response) => response.writeHead(502).end('<h1>Bad Gateway</h1>'),
  'no response': () => undefined,
};

/**
 * Reads good records while sixteen loops request broken ones. Returns the statuses of the good records, and
 * the number of upstream requests for each broken record.
 */
async function mix(kind: string, query: string, env: Record<string, string>) {
  const asked = new Map<string, number>();
  const answer: RequestListener = ({ url = '' }, response) => {
    const handle = decodeURIComponent(/\/api\/handles\/([^?]*)/.exec(url)?.[1] ?? '');
    asked.set(handle, (asked.get(handle) ?? 0) + 1);
    if (BROKEN.includes(handle)) BREAK[kind]?.(response);
    // Good responses are slower, so several broken responses arrive between two good ones.
    else setTimeout(send, 20, response, 200, recordOf(handle));
  };
  const proxy = await startBuiltProxy({ UPSTREAM_URL: (await listenHttp(answer)).url, ...env });
  const counts = { broken: new Map<number, number>(), good: new Map<number, number>() };
  const read = async (path: string, whose: keyof typeof counts): Promise<void> => {
    const { status } = await ask(proxy.url, path);
    counts[whose].set(status, (counts[whose].get(status) ?? 0) + 1);
  };
  let isOver = false;
  const attack = BROKEN.map(async (handle) => {
    while (!isOver) await read(`/api/handles/${handle}${query}`, 'broken');
  });
  await expect.poll(() => asked.size).toBeGreaterThan(0);
  let next = 0;
  await Promise.all(
    Array.from({ length: READERS }, async () => {
      while (next < GOOD) await read(`/api/handles/21.T11998/good-${next++}`, 'good');
    }),
  );
  isOver = true;
  await Promise.all(attack);
  const tries = BROKEN.map((handle) => asked.get(handle) ?? 0);
  const shown = (of: Map<number, number>): string =>
    [...of].map(([status, times]) => `${times} × ${status}`).join(', ');
  process.stdout.write(
    `16 records answered with ${kind}${query}: good ones got ${shown(counts.good)}; ` +
      `broken ones ${shown(counts.broken)}, the server was asked ${Math.min(...tries)} to ${Math.max(...tries)} times for each\n`,
  );
  return { good: Object.fromEntries(counts.good), tries, proxy };
}

const recordOf = (handle: string): unknown => {
  const value = {
    index: 1,
    type: 'URL',
    data: { format: 'string', value: 'https://example.org/' },
    ttl: 86400,
  };
  return { responseCode: 1, handle, values: [value] };
};

const HANGING = {
  UPSTREAM_TIMEOUT: '3s',
  UPSTREAM_STALE_AFTER: '1s',
  ...fixed({ upstream: { queueTimeoutMs: 10_000 } }),
};

describe('broken records requested repeatedly', () => {
  test.each([
    ['a 500', {}],
    ['no record', {}],
    ['a cut connection', {}],
    ['a 502 from a gateway', {}],
    ['no response', HANGING],
  ])('leave good records readable, and cost one upstream read each (%s, 16 loops)', async (kind, env) => {
    const { good, tries } = await mix(kind, '', { UPSTREAM_RETRY_AFTER: '1h', ...env });
    expect(good).toEqual({ 200: GOOD });
    // A read is retried once after a connection reset.
    expect(new Set(tries)).toEqual(new Set([kind === 'a cut connection' ? 2 : 1]));
  });

  test.each([
    ['a 500', {}],
    ['a cut connection', {}],
    ['a 502 from a gateway', {}],
    ['no response', HANGING],
  ])('leave good records readable when requested with auth=true (%s, 16 loops)', async (kind, env) => {
    const { good } = await mix(kind, '?auth=true', env);
    expect(good).toEqual({ 200: GOOD });
  });
});
