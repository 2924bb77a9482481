// An uncaught exception is logged and ends its process.
import { describe, expect, test } from 'vitest';
import { ask } from '../support/ask.js';
import { type BuiltProxy, startBuiltProxy } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { workersOf } from '../support/workers.js';

const demo = await startDemoServer();
const PATH = '/api/handles/21.T11998/page';

/** Loaded into every process of the program: throws on a signal. */
const PRELOADED = `
  process.on('SIGALRM', () => { throw new Error('thrown on purpose'); });
  process.on('SIGIO', () => { Promise.reject(new Error('rejected on purpose')); });
  process.on('SIGPROF', () => { Promise.reject(undefined); });
`;
const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(PRELOADED)}`;

const start = (SERVER_WORKERS: string): Promise<BuiltProxy> =>
  startBuiltProxy({ UPSTREAM_URL: demo.url, SERVER_WORKERS, NODE_OPTIONS });

const fatalOf = (proxy: BuiltProxy, pid: number): Record<string, unknown> | undefined =>
  proxy.logs().find((line) => line['level'] === 'fatal' && line['pid'] === pid);

describe.each([
  ['exception', 'SIGALRM', 'thrown on purpose'],
  ['rejection', 'SIGIO', 'rejected on purpose'],
  ['rejection without a reason', 'SIGPROF', 'thrown value: undefined'],
] as const)('an uncaught %s', (_what, signal, message) => {
  test('ends a single process with a log line and exit code 1', async () => {
    const proxy = await start('1');
    const pid = Number(proxy.logs()[0]?.['pid']);
    expect(await proxy.stop(signal)).toEqual({ code: 1, signal: null });
    expect(fatalOf(proxy, pid)).toMatchObject({ err: { message } });
  });

  test('ends the worker, which is restarted; the other one continues', async () => {
    const proxy = await start('2');
    const [first = 0, second = 0] = await workersOf(proxy);
    process.kill(first, signal);
    await expect.poll(() => workersOf(proxy)).not.toContain(first);
    await expect.poll(() => workersOf(proxy)).toHaveLength(2);
    expect(await workersOf(proxy)).toContain(second);
    expect(fatalOf(proxy, first)).toMatchObject({ err: { message } });
    expect(proxy.logs()).toContainEqual(
      expect.objectContaining({ msg: 'worker exited, restarting', worker: first, code: 1 }),
    );
    expect((await ask(proxy.url, PATH)).status).toBe(200);
  });
});

test('an uncaught exception in the primary ends all processes', async () => {
  const proxy = await start('2');
  const workers = await workersOf(proxy);
  expect((await proxy.stop('SIGALRM')).code).toBe(1);
  expect(proxy.output()).toContain('thrown on purpose');
  for (const pid of workers) expect(() => process.kill(pid, 0)).toThrow('ESRCH');
});
