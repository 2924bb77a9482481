// Workers that are busy with themselves: the operator's listener is in another process, and says so all the same.
import { expect, test } from 'vitest';
import { ask } from '../support/ask.js';
import { startBuiltProxy } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { workersOf } from '../support/workers.js';

const demo = await startDemoServer();

/** Loaded into every process of the program: is busy for eight seconds when the signal comes. */
const PRELOADED = `
  process.on('SIGALRM', () => { const until = Date.now() + 8000; while (Date.now() < until); });
`;

// Longer than the silence that tells it, so that it holds for both at the same time.
test('/readyz says no while every worker is late, and yes afterwards', async () => {
  const proxy = await startBuiltProxy({
    UPSTREAM_URL: demo.url,
    SERVER_WORKERS: '2',
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(PRELOADED)}`,
  });
  for (const pid of await workersOf(proxy)) process.kill(pid, 'SIGALRM');
  const readyz = async () => (await ask(proxy.adminUrl, '/readyz')).text;
  await expect.poll(readyz, { timeout: 12_000, interval: 100 }).toContain('"event loop"');
  await expect.poll(readyz, { timeout: 12_000 }).toContain('"ready"');
});
