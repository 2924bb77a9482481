// Workers with a blocked event loop: the admin listener is in another process and reports it.
import { rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { ask } from '../support/ask.js';
import { startBuiltProxy } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { workersOf } from '../support/workers.js';

const demo = await startDemoServer();

const BUSY = join(tmpdir(), `busy-${process.pid}`);

/** Loaded into every process of the program: is busy from the signal on for as long as the file is there. */
const PRELOADED = `
  import { existsSync } from 'node:fs';
  process.on('SIGALRM', () => { while (existsSync(${JSON.stringify(BUSY)})); });
`;

test('/readyz is 503 while every worker is late, and 200 afterwards', async () => {
  const proxy = await startBuiltProxy({
    UPSTREAM_URL: demo.url,
    SERVER_WORKERS: '2',
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(PRELOADED)}`,
  });
  writeFileSync(BUSY, '');
  const calm = (): void => {
    rmSync(BUSY, { force: true });
  };
  onTestFinished(calm);
  for (const pid of await workersOf(proxy)) process.kill(pid, 'SIGALRM');
  const readyz = async () => (await ask(proxy.adminUrl, '/readyz')).text;
  await expect.poll(readyz, { interval: 100 }).toContain('"event loop"');
  calm();
  await expect.poll(readyz).toContain('"ready"');
});
