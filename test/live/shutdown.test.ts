// Shutdown of the built program: requests in flight complete, and a second signal exits immediately.
import { once } from 'node:events';
import { Agent, type IncomingMessage, get } from 'node:http';
import { connect } from 'node:net';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { ask } from '../support/ask.js';
import { type BuiltProxy, startBuiltProxy, startConnectedProxy } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { startOtlpReceiver } from '../support/otlp-receiver.js';
import { startRedis } from '../support/redis-server.js';

const demo = await startDemoServer();
const PATH = '/api/handles/21.T11998/page';
/** Exceeds the test timeout: a shutdown that waits for it fails. */
const NEVER = '5m';

afterEach(() => {
  demo.heal();
  demo.reset();
});

const isStopping = (proxy: BuiltProxy) => expect.poll(() => proxy.output()).toContain('"stopping"');

describe('shutdown', () => {
  test.each(['SIGTERM', 'SIGINT'] as const)(
    'completes a slow request, refuses new connections and exits with code 0 on %s',
    async (signal) => {
      const proxy = await startBuiltProxy({ UPSTREAM_URL: demo.url });
      demo.hold.holdReplies('GET');
      const slow = ask(proxy.url, PATH);
      await expect.poll(() => demo.hold.size).toBe(1);
      const exited = proxy.stop(signal);
      await isStopping(proxy);
      // The listener closes once the connections that are already queued have been accepted.
      const refusal = (): Promise<unknown> =>
        ask(proxy.url, '/robots.txt').then(
          () => undefined,
          (error: unknown) => (error as NodeJS.ErrnoException).code,
        );
      await expect.poll(refusal).toBe('ECONNREFUSED');
      demo.hold.sendHeld('GET');
      const answer = await slow;
      expect(answer.status).toBe(200);
      expect(JSON.parse(answer.text)).toMatchObject({ responseCode: 1, handle: '21.T11998/page' });
      expect(await exited).toEqual({ code: 0, signal: null });
      expect(proxy.logs().at(-1)).toMatchObject({ msg: 'stopped' });
    },
  );

  test('fails /readyz and serves /metrics while requests in flight complete', async () => {
    const proxy = await startBuiltProxy({ UPSTREAM_URL: demo.url });
    demo.hold.holdReplies('GET');
    const slow = ask(proxy.url, PATH);
    await expect.poll(() => demo.hold.size).toBe(1);
    const exited = proxy.stop();
    await isStopping(proxy);
    const readyz = async () => (await ask(proxy.adminUrl, '/readyz')).status;
    await expect.poll(readyz).toBe(503);
    expect((await ask(proxy.adminUrl, '/metrics')).status).toBe(200);
    // The event loop may have stalled on a busy machine.
    await expect.poll(async () => (await ask(proxy.adminUrl, '/healthz')).status).toBe(200);
    demo.hold.sendHeld('GET');
    expect((await slow).status).toBe(200);
    expect(await exited).toEqual({ code: 0, signal: null });
  });

  test('accepts connections during server.shutdownDelay, while /readyz fails already', async () => {
    const proxy = await startBuiltProxy({ UPSTREAM_URL: demo.url, SERVER_SHUTDOWN_DELAY: '1s' });
    const stoppedAt = performance.now();
    const exited = proxy.stop();
    await isStopping(proxy);
    expect((await ask(proxy.adminUrl, '/readyz')).status).toBe(503);
    expect((await ask(proxy.url, PATH)).status).toBe(200);
    expect(await exited).toEqual({ code: 0, signal: null });
    expect(performance.now() - stoppedAt).toBeGreaterThan(1000);
  });

  test('does not wait for an idle keep-alive connection', async () => {
    const proxy = await startBuiltProxy({ UPSTREAM_URL: demo.url, SERVER_SHUTDOWN_TIMEOUT: NEVER });
    const agent = new Agent({ keepAlive: true });
    onTestFinished(() => {
      agent.destroy();
    });
    demo.hold.holdReplies('GET');
    const request = get(`${proxy.url}${PATH}`, { agent });
    const answered = once(request, 'response');
    await expect.poll(() => demo.hold.size).toBe(1);
    const exited = proxy.stop();
    await isStopping(proxy);
    demo.hold.sendHeld('GET');
    const [answer] = (await answered) as [IncomingMessage];
    answer.resume();
    await once(answer, 'end');
    expect(await exited).toEqual({ code: 0, signal: null });
  });

  test('does not wait for a connection that never sent data', async () => {
    const proxy = await startBuiltProxy({ UPSTREAM_URL: demo.url, SERVER_SHUTDOWN_TIMEOUT: NEVER });
    const { hostname, port } = new URL(proxy.url);
    const socket = connect(Number(port), hostname);
    socket.on('error', () => undefined);
    onTestFinished(() => {
      socket.destroy();
    });
    await once(socket, 'connect');
    expect(await proxy.stop()).toEqual({ code: 0, signal: null });
  });

  test('aborts requests that exceed server.shutdownTimeout', async () => {
    const env = { UPSTREAM_URL: demo.url, SERVER_SHUTDOWN_TIMEOUT: '200ms', UPSTREAM_TIMEOUT: NEVER };
    const proxy = await startBuiltProxy(env);
    demo.fail('hang');
    const hanging = ask(proxy.url, PATH);
    hanging.catch(() => undefined);
    await expect.poll(() => demo.asked).toBe(1);
    expect((await proxy.stop()).code).toBe(0);
    await expect(hanging).rejects.toMatchObject({ code: 'ECONNRESET' });
  });

  test('exits with code 0 although requests, a trace collector and Redis use up their time', async () => {
    const [collector, redis] = [await startOtlpReceiver(), await startRedis()];
    onTestFinished(redis.stop);
    const release = collector.hold();
    onTestFinished(release);
    const proxy = await startConnectedProxy({
      UPSTREAM_URL: demo.url,
      UPSTREAM_TIMEOUT: NEVER,
      SERVER_SHUTDOWN_TIMEOUT: '200ms',
      TRACING_ENDPOINT: collector.endpoint,
      REDIS_URL: redis.url,
    });
    demo.fail('hang');
    ask(proxy.url, PATH).catch(() => undefined);
    await expect.poll(() => demo.asked).toBe(1);
    redis.freeze();
    expect(await proxy.stop()).toEqual({ code: 0, signal: null });
    expect(proxy.logs().at(-1)).toMatchObject({ msg: 'stopped' });
  });

  test('ignores the duplicate signal that npm forwards after the process group received it', async () => {
    const proxy = await startBuiltProxy({ UPSTREAM_URL: demo.url });
    demo.hold.holdReplies('GET');
    const slow = ask(proxy.url, PATH);
    await expect.poll(() => demo.hold.size).toBe(1);
    void proxy.stop('SIGINT');
    await isStopping(proxy);
    const exited = proxy.stop('SIGINT');
    // This response arrives after the signal was handled.
    expect((await ask(proxy.adminUrl, '/readyz')).status).toBe(503);
    demo.hold.sendHeld('GET');
    expect((await slow).status).toBe(200);
    expect(await exited).toEqual({ code: 0, signal: null });
  });

  test('exits immediately on a second signal sent at least a second later', async () => {
    const env = { UPSTREAM_URL: demo.url, SERVER_SHUTDOWN_TIMEOUT: NEVER, UPSTREAM_TIMEOUT: NEVER };
    const proxy = await startBuiltProxy(env);
    demo.fail('hang');
    ask(proxy.url, PATH).catch(() => undefined);
    await expect.poll(() => demo.asked).toBe(1);
    const repeated = setInterval(() => void proxy.stop(), 100);
    onTestFinished(() => {
      clearInterval(repeated);
    });
    expect((await proxy.exited).code).toBeGreaterThan(0);
  });
});
