// Traces of the built program: it sends them before it exits, and logs their ids.
import '../support/real-sockets.js';
import { describe, expect, test } from 'vitest';
import { ask } from '../support/ask.js';
import { startBuiltProxy } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { startOtlpReceiver } from '../support/otlp-receiver.js';

const demo = await startDemoServer();
const PATH = '/api/handles/21.T11998/page';

describe('traces of the built program', () => {
  test("include their id in the request's log line", async () => {
    const collector = await startOtlpReceiver();
    const proxy = await startBuiltProxy({ UPSTREAM_URL: demo.url, TRACING_ENDPOINT: collector.endpoint });
    await ask(proxy.url, PATH);
    expect(await proxy.stop()).toMatchObject({ code: 0 });
    const line = proxy.logs().find(({ path }) => path === PATH);
    expect(line?.['traceId']).toMatch(/^[\da-f]{32}$/);
    expect(collector.spans().map(({ traceId }) => traceId)).toEqual([line?.['traceId'], line?.['traceId']]);
  });

  test('add no id to the log when no collector is configured', async () => {
    const proxy = await startBuiltProxy({ UPSTREAM_URL: demo.url });
    await ask(proxy.url, PATH);
    await proxy.stop();
    expect(proxy.logs().find(({ path }) => path === PATH)).not.toHaveProperty('traceId');
  });
});
