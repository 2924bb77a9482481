// A worker that cannot start any more: it is tried again, less and less often, while the other answers.
import { rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { ask } from '../support/ask.js';
import { startBuiltProxy } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { workersOf } from '../support/workers.js';

const demo = await startDemoServer();
const BROKEN = join(tmpdir(), `broken-${process.pid}`);

/** Loaded into every process of the program: while the file is there, none that begins gets far. */
const PRELOADED = `
  import { existsSync } from 'node:fs';
  if (existsSync(${JSON.stringify(BROKEN)})) process.exit(3);
`;

test('the waits grow, each is in the log, and the first good start ends them', async () => {
  const proxy = await startBuiltProxy({
    UPSTREAM_URL: demo.url,
    SERVER_WORKERS: '2',
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(PRELOADED)}`,
  });
  const [first = 0] = await workersOf(proxy);
  writeFileSync(BROKEN, '');
  onTestFinished(() => {
    rmSync(BROKEN, { force: true });
  });
  process.kill(first, 'SIGKILL');
  const waits = () => proxy.logs().flatMap(({ inMs }) => (inMs === undefined ? [] : [inMs]));
  await expect.poll(waits).toEqual([500, 1000, 2000]);
  expect((await ask(proxy.url, '/api/handles/21.T11998/page')).status).toBe(200);
  rmSync(BROKEN);
  await expect.poll(() => workersOf(proxy)).toHaveLength(2);
});
