// Each sampled request is exported as one trace to the configured collector; responses are unaffected.
import { setImmediate as nextTurn } from 'node:timers/promises';
import nock from 'nock';
import { partial } from '../support/partial.js';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { readTraceParent, start } from '../../src/plugins/tracing/tracing.js';
import { testContext } from '../support/context.js';
import { startHttpServer } from '../support/http-server.js';
import { createManualClock } from '../support/manual-clock.js';
import { useNock } from '../support/nock.js';
import { startOtlpReceiver } from '../support/otlp-receiver.js';
import { STARTED_AT, startProxy } from '../support/proxy.js';
import { metric } from '../support/sharing-proxies.js';
import { HANDLE, PATH, UPSTREAM_URL, mockUpstream } from '../support/upstream.js';

useNock();

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = '00f067aa0ba902b7';
const DROPPED = 'handle_proxy_telemetry_dropped_total';

const TRUSTED = { HTTP_TRUSTED_PROXIES: 'loopback' };

describe('tracing', () => {
  it('exports a request and its upstream read as two spans of one trace', async () => {
    mockUpstream();
    const collector = await startOtlpReceiver();
    const proxy = await startProxy({ TRACING_ENDPOINT: collector.endpoint });
    await proxy.ask(PATH);
    await proxy.close();
    const spans = collector.spans();
    const request = spans.find(({ kind }) => kind === 2);
    const read = spans.find(({ kind }) => kind === 3);
    expect(spans).toHaveLength(2);
    expect(request).toMatchObject({
      name: 'GET',
      startTimeUnixNano: `${STARTED_AT}000000`,
      status: { code: 0 },
      attributes: {
        'http.request.method': 'GET',
        'http.response.status_code': '200',
        'url.path': PATH,
        'handle_proxy.interface': 'record',
        'handle_proxy.result': 'miss',
        'handle_proxy.handle': HANDLE,
      },
    });
    expect(request).not.toHaveProperty('parentSpanId');
    expect(read).toMatchObject({ traceId: request?.traceId, parentSpanId: request?.spanId });
    expect(read?.attributes).toEqual({ 'handle_proxy.outcome': 'found' });
    const { resource } = collector.requests[0]?.resourceSpans[0] ?? {};
    expect(resource?.attributes).toEqual([
      { key: 'service.name', value: { stringValue: 'handle-resolver-proxy' } },
    ]);
  });

  it('lets Node warn of no listeners at a forwarded read, which has as many as it expects', async () => {
    nock(UPSTREAM_URL).post(PATH).reply(200, {});
    const proxy = await startProxy({ TRACING_ENDPOINT: (await startOtlpReceiver()).endpoint });
    const warnings: string[] = [];
    const onWarning = ({ name }: Error): void => void warnings.push(name);
    process.on('warning', onWarning);
    onTestFinished(() => void process.off('warning', onWarning));
    expect((await proxy.ask(PATH, { method: 'POST' })).status).toBe(200);
    await nextTurn();
    expect(warnings).not.toContain('MaxListenersExceededWarning');
  });

  it('exports without derived signals, which Node.js 20 keeps for as long as their source', async () => {
    const derive = vi.spyOn(AbortSignal, 'any');
    onTestFinished(() => {
      derive.mockRestore();
    });
    mockUpstream();
    const collector = await startOtlpReceiver();
    const proxy = await startProxy({ TRACING_ENDPOINT: collector.endpoint });
    await proxy.ask(PATH);
    await proxy.close();
    expect(collector.spans()).toHaveLength(2);
    expect(derive).not.toHaveBeenCalled();
  });

  it('continues the trace of a trusted proxy', async () => {
    mockUpstream();
    const collector = await startOtlpReceiver();
    const proxy = await startProxy({
      TRACING_ENDPOINT: collector.endpoint,
      TRACING_SAMPLE_PERCENT: '0',
      ...TRUSTED,
    });
    await proxy.ask(PATH, { headers: { traceparent: `00-${TRACE}-${PARENT}-01` } });
    await proxy.close();
    const request = collector.spans().find(({ kind }) => kind === 2);
    expect(request).toMatchObject({ traceId: TRACE, parentSpanId: PARENT });
  });

  it.each([
    ['an unsampled request', { TRACING_SAMPLE_PERCENT: '0' }, {}],
    ['a request that a trusted proxy did not sample', TRUSTED, { traceparent: `00-${TRACE}-${PARENT}-00` }],
    [
      'an unsampled request that another client marks as sampled',
      { TRACING_SAMPLE_PERCENT: '0' },
      { traceparent: `00-${TRACE}-${PARENT}-01` },
    ],
  ])('does not export %s', async (_what, env, headers) => {
    mockUpstream();
    const collector = await startOtlpReceiver();
    const proxy = await startProxy({ TRACING_ENDPOINT: collector.endpoint, ...env });
    expect((await proxy.ask(PATH, { headers })).status).toBe(200);
    await proxy.close();
    expect(collector.requests).toEqual([]);
  });

  it('starts a new trace for a client that is no trusted proxy', async () => {
    mockUpstream();
    const collector = await startOtlpReceiver();
    const proxy = await startProxy({ TRACING_ENDPOINT: collector.endpoint });
    await proxy.ask(PATH, { headers: { traceparent: `00-${TRACE}-${PARENT}-00` } });
    await proxy.close();
    const request = collector.spans().find(({ kind }) => kind === 2);
    expect(request?.traceId).not.toBe(TRACE);
    expect(request).not.toHaveProperty('parentSpanId');
  });

  it('cuts long attributes', async () => {
    mockUpstream();
    const collector = await startOtlpReceiver();
    const proxy = await startProxy({ TRACING_ENDPOINT: collector.endpoint });
    await proxy.ask(`/api/handles/21.T1/${'x'.repeat(4000)}`);
    await proxy.close();
    expect(collector.spans()[0]?.attributes['url.path']).toHaveLength(1024);
  });

  it('traces prepared responses', async () => {
    const upstream = mockUpstream();
    const collector = await startOtlpReceiver();
    const proxy = await startProxy({ TRACING_ENDPOINT: collector.endpoint });
    for (let asked = 0; asked < 4; asked++) await proxy.ask(PATH);
    await proxy.close();
    expect(upstream.asked).toBe(1);
    expect(collector.spans().filter(({ kind }) => kind === 2)).toHaveLength(4);
  });

  it('marks a failed request as an error', async () => {
    mockUpstream({ status: 200, body: '', error: 'ECONNREFUSED' });
    const collector = await startOtlpReceiver();
    const proxy = await startProxy({ TRACING_ENDPOINT: collector.endpoint });
    expect((await proxy.ask(PATH)).status).toBe(502);
    await proxy.close();
    expect(
      collector
        .spans()
        .map(({ kind, status }) => [kind, status.code])
        .sort(),
    ).toEqual([
      [2, 2],
      [3, 2],
    ]);
  });

  it.each([
    ['is unreachable', () => Promise.resolve('http://127.0.0.1:1/v1/traces')],
    ['fails', async () => (await startOtlpReceiver(500)).endpoint],
  ])('fails no request when the collector %s', async (_what, place) => {
    mockUpstream();
    const proxy = await startProxy({ TRACING_ENDPOINT: await place() });
    expect((await proxy.ask(PATH)).status).toBe(200);
    await proxy.close();
    // The request and its upstream read.
    expect(await metric(proxy, DROPPED)).toBe(2);
  });

  it('holds at most 4,096 spans while the collector does not respond, and counts further ones', async () => {
    const lines: string[] = [];
    const collector = await startOtlpReceiver();
    const release = collector.hold();
    let dropped = 0;
    const tracing = start(
      partial({
        log: partial({
          info: (_fields: object, msg?: string) => lines.push(String(msg)),
          warn: (_: object, msg?: string) => lines.push(String(msg)),
        }),
        clock: { wall: () => STARTED_AT, now: () => STARTED_AT },
        metrics: partial({ countDroppedTelemetry: (_kind, count) => (dropped += count ?? 1) }),
        isTrustedProxy: () => false,
      }),
      partial({ tracing: { endpoint: collector.endpoint, samplePercent: 100 } }),
    );
    // A batch of 512 is sent, and 4,096 wait.
    for (let span = 0; span < 512 + 4096 + 100; span++)
      tracing.spans?.run('resolve', ({ end }) => {
        end(false);
      });
    expect(dropped).toBe(100);
    expect(lines).toEqual(['trace export failed']);
    release();
    await expect.poll(() => collector.spans().length).toBe(512 + 4096);
    await expect.poll(() => lines).toEqual(['trace export failed', 'traces are exported again']);
  });

  it('logs at most one failure a minute while the collector fails every other time', async () => {
    let posts = 0;
    const url = await startHttpServer((req, res) => {
      req.resume();
      res.writeHead(posts++ % 2 === 0 ? 500 : 200).end();
    });
    const { lines, ...context } = testContext({ clock: createManualClock() });
    const tracing = start(
      partial({ ...context, isTrustedProxy: () => false }),
      partial({ tracing: { endpoint: `${url}/v1/traces`, samplePercent: 100 } }),
    );
    for (let span = 0; span < 8 * 512; span++)
      tracing.spans?.run('resolve', ({ end }) => {
        end(false);
      });
    await expect.poll(() => posts).toBe(8);
    await tracing.close?.();
    expect(lines.map(({ msg }) => msg)).toEqual(['trace export failed', 'traces are exported again']);
  });

  it('stops within seconds while the collector does not respond', async () => {
    mockUpstream();
    const collector = await startOtlpReceiver();
    collector.hold();
    const proxy = await startProxy({ TRACING_ENDPOINT: collector.endpoint });
    await proxy.ask(PATH);
    const startedAt = performance.now();
    await proxy.close();
    expect(performance.now() - startedAt, 'before the request times out').toBeLessThan(4500);
    expect(await metric(proxy, DROPPED)).toBe(2);
  });

  it.each([
    [`00-${TRACE}-${PARENT}-01`, { traceId: TRACE, spanId: PARENT, isSampled: true }],
    [`cc-${TRACE}-${PARENT}-00-later`, { traceId: TRACE, spanId: PARENT, isSampled: false }],
    [`ff-${TRACE}-${PARENT}-01`, undefined],
    [`00-${'0'.repeat(32)}-${PARENT}-01`, undefined],
    [`00-${TRACE}-${'0'.repeat(16)}-01`, undefined],
    [`00-${TRACE.toUpperCase()}-${PARENT}-01`, undefined],
    ['', undefined],
    [undefined, undefined],
  ])('parses traceparent %s', (header, context) => {
    expect(readTraceParent(header)).toEqual(context);
  });
});
