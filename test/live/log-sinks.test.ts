// A log that cannot be written costs log lines: requests, probes and the stop of the built program go on.
import '../support/real-sockets.js';
import { Agent } from 'node:http';
import { describe, expect, onTestFinished, test } from 'vitest';
import { adminValue, textValue } from '../../src/dev-server/seed.js';
import { ask } from '../support/ask.js';
import { startDemoServer } from '../support/demo.js';
import { type LoggingProxy, SINKS, startOnUnreadTerminal, startWithStdout } from '../support/log-sinks.js';
import { itWithProgram } from '../support/programs.js';

const demo = await startDemoServer();

/** A long name, so that few log lines fill the buffer. */
const HANDLE = `21.T11998/${'long'.repeat(500)}`;
const PATH = `/api/handles/${HANDLE}`;
demo.put(HANDLE, [textValue(1, 'URL', 'https://example.org/'), adminValue()]);

/** Preloaded code that throws on a signal. */
const PRELOADED = `process.on('SIGALRM', () => { throw new Error('thrown on purpose'); });`;
const ENV = {
  UPSTREAM_URL: demo.url,
  LOG_REQUESTS: 'all',
  NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(PRELOADED)}`,
};
const BATCH = 100;

type Reachable = Pick<LoggingProxy, 'url' | 'adminUrl'>;

/** Sends logged hits. Returns how many log lines have been dropped since the start. */
async function hit({ url, adminUrl }: Reachable): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: 8 });
  onTestFinished(() => {
    agent.destroy();
  });
  const hits = await Promise.all(Array.from({ length: BATCH }, () => ask(url, PATH, { agent })));
  expect(hits.map(({ status }) => status)).toEqual(hits.map(() => 200));
  agent.destroy();
  const { text } = await ask(adminUrl, '/metrics');
  return Number(/^handle_proxy_telemetry_dropped_total\{kind="log"\} (\d+)$/m.exec(text)?.[1]);
}

/** Logs until lines are dropped: hits and probes are answered meanwhile and afterwards. */
async function expectServes(proxy: Reachable): Promise<void> {
  await expect.poll(() => hit(proxy), { timeout: 120_000 }).toBeGreaterThan(0);
  await hit(proxy);
  // After a stall of the machine, /readyz lists the event loop for a moment.
  for (const path of ['/healthz', '/readyz'])
    await expect.poll(async () => (await ask(proxy.adminUrl, path)).status).toBe(200);
}

describe.each(Object.entries(SINKS))('with %s as the log', (_name, sink) => {
  test('hits and probes are answered, dropped lines are counted, and SIGTERM stops the process', async () => {
    const proxy = await startWithStdout(sink, ENV);
    await expectServes(proxy);
    proxy.kill('SIGTERM');
    // The code is 1 if the stop takes longer than `server.shutdownTimeout`.
    expect(await proxy.exited).toEqual({ code: 0, signal: null });
  });

  test('an uncaught exception ends the process', async () => {
    const proxy = await startWithStdout(sink, ENV);
    await hit(proxy);
    proxy.kill('SIGALRM');
    expect(await proxy.exited).toEqual({ code: 1, signal: null });
  });
});

describe('with a terminal as the log', () => {
  itWithProgram(
    'script',
    'hits and probes are answered, and SIGTERM ends it, while nobody reads',
    async () => {
      const proxy = await startOnUnreadTerminal(ENV);
      await expectServes(proxy);
      proxy.kill('SIGTERM');
      await expect.poll(proxy.isRunning).toBe(false);
    },
  );

  itWithProgram('script', 'the same after the terminal has closed', async () => {
    const proxy = await startOnUnreadTerminal(ENV);
    proxy.closeTerminal();
    await expectServes(proxy);
    proxy.kill('SIGTERM');
    await expect.poll(proxy.isRunning).toBe(false);
  });
});
