// A failing load is one load for all workers: each that waits for it gets its failure.
import { afterEach, expect, test } from 'vitest';
import { ask } from '../support/ask.js';
import { startBuiltProxy } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';

const demo = await startDemoServer();

afterEach(() => {
  demo.heal();
});

// Half of them belong to the other worker, whichever is called.
const HANDLES = Array.from({ length: 16 }, (_, at) => `21.T11998/failing-${at}`);

test.each([
  ['error', 500, {}],
  ['refuse', 503, {}],
  ['hang', 504, { UPSTREAM_TIMEOUT: '2s' }],
] as const)('%s: each reader gets %s, and the upstream was asked once', async (fault, status, env) => {
  const proxy = await startBuiltProxy({
    UPSTREAM_URL: demo.url,
    SERVER_WORKERS: '2',
    UPSTREAM_BREAKER_FAILURES: '1000',
    ...env,
  });
  demo.reset();
  demo.fail(fault);
  const answers = await Promise.all(HANDLES.map((handle) => ask(proxy.url, `/api/handles/${handle}`)));
  expect(answers.map((answer) => answer.status)).toEqual(HANDLES.map(() => status));
  expect(HANDLES.map((handle) => demo.askedFor(handle))).toEqual(HANDLES.map(() => 1));
});
