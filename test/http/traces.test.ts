// Each sampled request is exported as one trace to the configured collector; responses are unaffected.
import { describe, expect, it } from 'vitest';
import { readTraceParent } from '../../src/observe/tracer.js';
import { useNock } from '../support/nock.js';
import { startOtlpReceiver } from '../support/otlp-receiver.js';
import { STARTED_AT, startProxy } from '../support/proxy.js';
import { HANDLE, PATH, mockUpstream } from '../support/upstream.js';

useNock();

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = '00f067aa0ba902b7';

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

  it('continues the trace of the caller', async () => {
    mockUpstream();
    const collector = await startOtlpReceiver();
    const proxy = await startProxy({ TRACING_ENDPOINT: collector.endpoint, TRACING_SAMPLE_PERCENT: '0' });
    await proxy.ask(PATH, { headers: { traceparent: `00-${TRACE}-${PARENT}-01` } });
    await proxy.close();
    const request = collector.spans().find(({ kind }) => kind === 2);
    expect(request).toMatchObject({ traceId: TRACE, parentSpanId: PARENT });
  });

  it.each([
    ['an unsampled request', { TRACING_SAMPLE_PERCENT: '0' }, {}],
    ['a request that its caller did not sample', {}, { traceparent: `00-${TRACE}-${PARENT}-00` }],
  ])('does not export %s', async (_what, env, headers) => {
    mockUpstream();
    const collector = await startOtlpReceiver();
    const proxy = await startProxy({ TRACING_ENDPOINT: collector.endpoint, ...env });
    expect((await proxy.ask(PATH, { headers })).status).toBe(200);
    await proxy.close();
    expect(collector.requests).toEqual([]);
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
