// Mutated Handle server responses, read through every route: the proxy reports errors, caches no invalid
// record, and keeps running.
// `npm run fuzz` sends far more responses.
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { type Asked, ask } from '../support/ask.js';
import { type BuiltProxy, startBuiltProxy } from '../support/built-proxy.js';
import { type FuzzedUpstream, startFuzzedUpstream } from './answers.js';
import { marker, STRANGER } from './corpus.js';
import { ROUTES } from './routes.js';
import { fixed } from '../support/fixed.js';

const COUNT = Number(process.env['FUZZ_ANSWERS'] ?? 60);
const SEED = Number(process.env['FUZZ_SEED'] ?? 1);
vi.setConfig({ testTimeout: 180_000 + COUNT * 400 });

const AT_A_TIME = 32;

interface Reply {
  responseCode: number;
  handle: string;
  values?: { index: number; type: string; data: { value: unknown } }[];
}

/** Asserts that the response is valid for this handle, whatever bytes the upstream sent. */
function expectAllowed(handle: string, { status, text, headers }: Asked): void {
  const named = `seed ${handle}: ${status} ${text.slice(0, 300)}`;
  expect([200, 400, 404, 401, 500, 502, 503, 504], named).toContain(status);
  expect(text, named).not.toContain(INTERNAL);
  expect(headers['set-cookie'], named).toBeUndefined();
  expect(headers['location'], named).toBeUndefined();
  const reply = JSON.parse(text) as Reply;
  expect(Number.isInteger(reply.responseCode), named).toBe(true);
  if (status !== 200) return;
  expect(reply.handle, named).toBe(handle);
  expect(text, named).not.toContain(marker(STRANGER));
  for (const value of reply.values ?? []) expect(Number.isInteger(value.index), named).toBe(true);
}

/** Title of the proxy's internal errors. */
const INTERNAL = 'Unexpected error in the proxy';

/**
 * Whether the record is cached or was just stored, because on a busy machine the first request may have timed
 * out.
 */
const isKept = ({ headers }: Asked): boolean => /; ?(hit|stored)/.test(String(headers['cache-status']));

async function start(): Promise<{ upstream: FuzzedUpstream; proxy: BuiltProxy }> {
  const upstream = await startFuzzedUpstream();
  onTestFinished(upstream.close);
  const proxy = await startBuiltProxy({
    UPSTREAM_URL: upstream.url,
    UPSTREAM_TIMEOUT: '1s',
    UPSTREAM_WRITE_TIMEOUT: '1s',
    UPSTREAM_STALE_AFTER: '500ms',
    UPSTREAM_RETRY_AFTER: '0s',
    ...fixed({ upstream: { maxRetryAfterMs: 0, breaker: { failures: 10_000 } } }),
    CACHE_NOT_FOUND_TTL: '1h',
    V2_ANONYMOUS_READ: 'true',
  });
  return { upstream, proxy };
}

async function inTurn<T>(all: readonly T[], work: (one: T) => Promise<void>): Promise<void> {
  const left = [...all];
  const workOn = async (): Promise<void> => {
    for (let one = left.pop(); one !== undefined; one = left.pop()) await work(one);
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, workOn));
}

async function expectHealthy(proxy: BuiltProxy): Promise<void> {
  expect((await ask(proxy.adminUrl, '/readyz')).status).toBe(200);
  expect(proxy.logs().filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([]);
  expect(await proxy.stop()).toEqual({ code: 0, signal: null });
}

describe('proxy with fuzzed upstream responses', () => {
  test(`returns only valid responses for ${COUNT} mutated upstream responses`, async () => {
    const { upstream, proxy } = await start();
    const kept = new Map<string, string>();
    const statuses = new Map<number, number>();
    let next = SEED * 1_000_000;
    const handles = Array.from({ length: COUNT }, () => `21.T11998/${next++}`);

    await inTurn(handles, async (handle) => {
      const first = await ask(proxy.url, `/api/handles/${handle}`);
      statuses.set(first.status, (statuses.get(first.status) ?? 0) + 1);
      expectAllowed(handle, first);
      const again = await ask(proxy.url, `/api/handles/${handle}`);
      expectAllowed(handle, again);
      if (isKept(again)) kept.set(handle, again.text);
    });
    const shown = [...statuses].map(([status, times]) => `${status}: ${times}`).join(', ');
    process.stdout.write(`${upstream.mutated} mutated answers, readers got ${shown}; kept ${kept.size}\n`);

    upstream.heal();
    await inTurn(handles, async (handle) => {
      const path = `/api/handles/${handle}`;
      const answer = await ask(proxy.url, path);
      const fresh = await ask(proxy.url, `${path}?auth=true`);
      expect([fresh.status, fresh.text.includes(marker(handle))], handle).toEqual([200, true]);
      // A stored record is served until its TTL ends, possibly soon. An invalid record was never stored.
      expect([kept.get(handle), fresh.text], handle).toContain(answer.text);
      expect((await ask(proxy.url, path)).text, handle).toBe(fresh.text);
    });
    await expectHealthy(proxy);
    expect(upstream.mutated).toBeGreaterThanOrEqual(COUNT);
    expect(kept.size).toBeGreaterThan(0);
  });

  test(`reports no internal error for ${COUNT} mutated upstream responses on ${ROUTES.length} routes`, async () => {
    const { upstream, proxy } = await start();
    const statuses = new Map<number | 'cut off', number>();
    const failed: string[] = [];
    const seeds = Array.from({ length: COUNT }, (_, at) => SEED * 1_000_000 + at);
    await inTurn(seeds, async (seed) => {
      for (const route of ROUTES) {
        // A response relayed to a single client is truncated where the upstream response was.
        const cutOff = { status: 'cut off', text: '' } as const;
        const { status, text } = await route.ask(proxy, seed).catch(() => cutOff);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        if (text.includes(INTERNAL)) failed.push(`seed ${seed}, ${route.name}: ${status}`);
      }
    });
    const shown = [...statuses].map(([status, times]) => `${status}: ${times}`).join(', ');
    process.stdout.write(`${upstream.mutated} mutated answers on ${ROUTES.length} routes gave ${shown}\n`);
    expect(failed).toEqual([]);
    await expectHealthy(proxy);
  });
});
