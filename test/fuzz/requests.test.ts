// Mutated requests to the built program over real sockets: it neither crashes nor hangs, sends only valid
// HTTP, and has a correct cache afterwards. `npm run fuzz` sends far more requests.
import { describe, expect, test, vi } from 'vitest';
import { ask } from '../support/ask.js';
import { startBuiltProxy } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { fixed } from '../support/fixed.js';
import { fuzzRequests } from './requests.js';

const COUNT = Number(process.env['FUZZ_REQUESTS'] ?? 3000);
const SEED = Number(process.env['FUZZ_SEED'] ?? 1);
vi.setConfig({ testTimeout: 180_000 + COUNT * 10 });

const demo = await startDemoServer();
const HANDLES = ['21.T11998/page', '21.T11998/demo', '21.T11998/nobody', '21.T11998/empty'];

describe('proxy with fuzzed HTTP requests', () => {
  test(`returns only valid HTTP to ${COUNT} mutated requests`, async () => {
    const proxy = await startBuiltProxy({
      UPSTREAM_URL: demo.url,
      UPSTREAM_TIMEOUT: '2s',
      UPSTREAM_STALE_AFTER: '1s',
      ...fixed({ server: { headersTimeoutMs: 2000, requestTimeoutMs: 4000 } }),
    });
    const clean = await Promise.all(HANDLES.map((handle) => ask(demo.url, `/api/handles/${handle}`)));
    const sent = await fuzzRequests(proxy.url, { seed: SEED, count: COUNT });
    const statuses = [...sent.statuses].sort(([one], [other]) => one - other);
    process.stdout.write(
      `${sent.requests} requests on ${sent.connections} connections: ` +
        `${statuses.map(([status, times]) => `${status}: ${times}`).join(', ')}\n`,
    );
    for (const [at, handle] of HANDLES.entries()) {
      for (const path of [handle, handle.toUpperCase(), handle.toLowerCase()]) {
        const answer = await ask(proxy.url, `/api/handles/${path}`);
        const { status, text } = clean[at]!;
        expect([answer.status, answer.text.replace(path, handle)]).toEqual([status, text]);
      }
    }
    expect((await ask(proxy.adminUrl, '/readyz')).status).toBe(200);
    expect(proxy.logs().filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([]);
    expect(await proxy.stop()).toEqual({ code: 0, signal: null });
    expect(sent.statuses.get(200)).toBeGreaterThan(0);
    expect(sent.statuses.get(400)).toBeGreaterThan(0);
    expect(sent.statuses.get(500) ?? 0).toBe(0);
  });
});
