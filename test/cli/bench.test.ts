// `bench`: measurements of a running proxy, and their limits.
import { describe, expect, test } from 'vitest';
import { cli } from '../support/cli.js';
import { startDemoServer } from '../support/demo.js';
import { startHostileServer } from '../support/hostile-server.js';
import { itWithProgram } from '../support/programs.js';
import { startSeparated } from '../support/sharing-proxies.js';
import { CTRL_C, startOnTerminal } from '../support/terminal.js';
import { freePort } from '../support/free-port.js';

const demo = await startDemoServer();
const HANDLES = ['21.T11998/demo', '21.T11998/page', '21.T11998/nobody'];

const place = async () => ({ PROXY_URL: (await startSeparated({ upstreamUrl: demo.url })).url });

describe('bench command', () => {
  test('reports throughput, latency and hit ratio of the allowed number of requests', async () => {
    demo.reset();
    const { code, stdout } = await cli(['bench', ...HANDLES, '--requests', '300', '--json'], await place());
    expect(code).toBe(0);
    const report = JSON.parse(stdout) as { hitRatio: number; latencyMs: Record<string, number> };
    expect(report).toMatchObject({ responses: 300, statuses: { 200: 200, 404: 100 }, unanswered: 0 });
    // Requests sent before the first cached response are misses.
    expect(report.hitRatio).toBeGreaterThan(0.5);
    expect(demo.asked).toBe(3);
    const { p50 = 0, p90 = 0, p99 = 0, max = 0 } = report.latencyMs;
    expect([p50, p90, p99, max]).toEqual([p50, p90, p99, max].sort((one, other) => one - other));
    expect(p50).toBeGreaterThan(0);
  });

  itWithProgram('script', 'prints a table on a terminal, and partial results on Ctrl-C', async () => {
    demo.reset();
    const { screen, exited, press } = startOnTerminal(
      ['bench', ...HANDLES, '--rate', '100', '--duration', '60'],
      await place(),
    );
    await expect.poll(() => demo.asked).toBeGreaterThan(0);
    press(CTRL_C);
    expect(await exited).toMatchObject({ code: 0 });
    expect(screen()).toMatch(
      /responses +\d+ in [\d.]+ s \(\d+\/s\)\r\nhits +\S+.*\r\nlatency +p50 .* · p99 .*\r\n/,
    );
  });

  test('limits the duration and the rate', async () => {
    const args = ['bench', ...HANDLES, '--duration', '1', '--rate', '50', '--json'];
    const { responses } = JSON.parse((await cli(args, await place())).stdout) as { responses: number };
    expect(responses).toBeGreaterThan(0);
    expect(responses).toBeLessThanOrEqual(51);
  });

  test('exits with 1 for error responses, and when there is no response at all', async () => {
    const failing = await startSeparated({ upstreamUrl: `http://127.0.0.1:${await freePort()}` });
    const { code, stderr } = await cli(['bench', 'a', '--requests', '20'], { PROXY_URL: failing.url });
    expect([code, stderr]).toEqual([1, '20 requests failed\n']);
    const gone = { PROXY_URL: `http://127.0.0.1:${await freePort()}` };
    const none = await cli(['bench', 'a', '--requests', '20'], gone);
    expect(none).toMatchObject({ code: 1, stdout: expect.stringMatching(/no response +20\n/) as string });
  });

  test('counts a response that breaks off as none, and reads a long response to its end', async () => {
    const body = 'x'.repeat(1_000_000);
    const proxy = (length: number) =>
      startHostileServer((socket) =>
        socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n${body}`),
      );
    const args = ['bench', 'a', '--requests', '1', '--json'];
    const broken = await cli(args, { PROXY_URL: await proxy(body.length + 1) });
    expect(broken).toMatchObject({ code: 1, stderr: '1 request failed\n' });
    expect(JSON.parse(broken.stdout)).toMatchObject({ responses: 0, unanswered: 1 });
    const whole = await cli(args, { PROXY_URL: await proxy(body.length) });
    expect(JSON.parse(whole.stdout)).toMatchObject({ responses: 1, unanswered: 0 });
  });

  test('rejects a remote proxy unless --remote is given', async () => {
    const env = { PROXY_URL: 'http://handle.invalid:8080' };
    const { code, stderr } = await cli(['bench', 'a', '--requests', '1'], env);
    expect([code, stderr]).toEqual([2, expect.stringContaining('--remote')]);
    expect((await cli(['bench', 'a', '--requests', '1', '--remote'], env)).code).toBe(1);
  });

  test.each([
    ['no handle', []],
    ['a duration of an hour', ['a', '--duration', '3600']],
    ['ten thousand connections', ['a', '--connections', '10000']],
    ['no request', ['a', '--requests', '0']],
    ['a missing file', ['--file', '/nowhere/list']],
  ])('rejects %s as invalid usage', async (_case, args) => {
    expect((await cli(['bench', ...args])).code).toBe(2);
  });
});
