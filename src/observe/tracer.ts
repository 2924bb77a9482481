// Tracing: a span per request and per upstream read, with the W3C trace context of the caller, and their export.
import { AsyncLocalStorage } from 'node:async_hooks';
import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Config } from '../config/schema.js';
import type { Context } from '../context.js';

interface RequestTrace {
  readonly traceId: string;
  /** Adds attributes to the span of the request. */
  describe: (attributes: Record<string, string | number>) => void;
}

interface MessageTrace extends RequestTrace {
  end: (isFailure: boolean) => void;
}

type RequestListener = (req: IncomingMessage, res: ServerResponse) => unknown;

export interface Tracer {
  /** Traces the requests of a listener. */
  wrap: (listener: RequestListener) => RequestListener;
  /** Traces a request that is not HTTP; nobody continues its trace. `end` sends its span. */
  run: <T>(name: string, work: (trace: MessageTrace) => T) => T;
  /** The trace of the current request (AsyncLocalStorage). */
  current: () => RequestTrace | undefined;
  /** Records a call that has just ended for the current request. */
  addCall: (call: { name: string; durationMs: number; result: string; isFailure: boolean }) => void;
}

interface TracerDeps {
  sender: { add: (span: Span) => void };
  /** Percentage of requests without a `traceparent` that are traced. */
  samplePercent: number;
  random: () => number;
  now: () => number;
}

interface OpenSpan extends RequestTrace {
  context: TraceContext;
  parentSpanId: string | undefined;
  attributes: Record<string, string | number>;
}

export function createTracer({ sender, samplePercent, random, now }: TracerDeps): Tracer {
  const storage = new AsyncLocalStorage<OpenSpan>();
  const sendSpan = createSendSpan(sender, now);
  const samples = (): boolean => random() * 100 < samplePercent;

  /** Sends the span of a request when its response has ended. */
  function sendOnClose({ method = '' }: IncomingMessage, res: ServerResponse, span: OpenSpan): void {
    const startedAt = now();
    const send = (): void => {
      const { statusCode } = res;
      const ofHttp = { 'http.request.method': method, 'http.response.status_code': statusCode };
      Object.assign(span.attributes, { ...ofHttp, ...span.attributes });
      sendSpan(span, { name: method, startedAt, isFailure: statusCode >= 500 });
    };
    // Other listeners of `close` add attributes first.
    if (span.context.isSampled) {
      res.once('close', () => {
        queueMicrotask(send);
      });
    }
  }

  return {
    wrap: (listener) =>
      function traced(req, res) {
        const span = openSpan(req.headers['traceparent']?.toString(), samples);
        sendOnClose(req, res, span);
        return storage.run(span, listener, req, res);
      },
    run(name, work) {
      const span = openSpan(undefined, samples);
      const startedAt = now();
      const end = (isFailure: boolean): void => {
        sendSpan(span, { name, startedAt, isFailure });
      };
      return storage.run(span, () => work({ ...span, end }));
    },
    current: () => storage.getStore(),
    addCall({ name, durationMs, result, isFailure }) {
      const request = storage.getStore();
      if (request?.context.isSampled !== true) return;
      const endedAt = now();
      sender.add({
        traceId: request.traceId,
        spanId: newSpanId(),
        parentSpanId: request.context.spanId,
        name,
        kind: 'client',
        startedAt: endedAt - durationMs,
        endedAt,
        attributes: { 'handle_proxy.outcome': result },
        isFailure,
      });
    },
  };
}

type SendSpan = (span: OpenSpan, call: { name: string; startedAt: number; isFailure: boolean }) => void;

const createSendSpan =
  (sender: TracerDeps['sender'], now: () => number): SendSpan =>
  ({ context, parentSpanId, attributes }, call) => {
    if (!context.isSampled) return;
    const { traceId, spanId } = context;
    const parent = parentSpanId !== undefined && { parentSpanId };
    sender.add({ traceId, spanId, ...parent, kind: 'server', endedAt: now(), attributes, ...call });
  };

function openSpan(header: string | undefined, samples: () => boolean): OpenSpan {
  const parent = readTraceParent(header);
  const { traceId = newTraceId(), isSampled = samples() } = parent ?? {};
  const attributes: OpenSpan['attributes'] = {};
  const describe: OpenSpan['describe'] = (more) => Object.assign(attributes, more);
  const context = { traceId, spanId: newSpanId(), isSampled };
  return { traceId, describe, context, parentSpanId: parent?.spanId, attributes };
}

interface TraceContext {
  /** 32 hex digits. */
  traceId: string;
  /** 16 hex digits. */
  spanId: string;
  isSampled: boolean;
}

const ALL_ZEROS = /^0+$/;

/** Undefined for an invalid header, which starts a new trace (W3C Trace Context 2021-11-23, sections 2.2 and 4.3). */
export function readTraceParent(header: string | undefined): TraceContext | undefined {
  const match = /^(?!ff)[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(?:-.*)?$/.exec(header ?? '');
  const [, traceId = '', spanId = '', flags = ''] = match ?? [];
  if (match === null || ALL_ZEROS.test(traceId) || ALL_ZEROS.test(spanId)) return undefined;
  return { traceId, spanId, isSampled: (parseInt(flags, 16) & 1) === 1 };
}

const newTraceId = (): string => randomBytes(16).toString('hex');
const newSpanId = (): string => randomBytes(8).toString('hex');

interface Span {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  /** `server`: a received request; `client`: a sent one. */
  kind: 'server' | 'client';
  startedAt: number;
  endedAt: number;
  attributes: Readonly<Record<string, string | number>>;
  isFailure: boolean;
}

interface SpanSender {
  add: (span: Span) => void;
  /** Exports the buffered spans. */
  close: () => Promise<void>;
}

interface SpanSenderOptions {
  /** Such as `http://collector:4318/v1/traces`. */
  endpoint: string;
  serviceName: string;
  onSent: () => void;
  onFailure: (error: unknown) => void;
}

const KIND = { server: 2, client: 3 } as const;
const STATUS_UNSET = 0;
const STATUS_ERROR = 2;
const BATCH = 512;
const SEND_EVERY_MS = 1000;
const TIMEOUT_MS = 5000;
/** Maximum buffered spans while the collector is unreachable; further ones are dropped. */
const MAX_BUFFERED = 4096;

export interface Tracing {
  tracer: Tracer;
  /** Sends the buffered spans. */
  close: () => Promise<void>;
}

/** @returns undefined where no tracing endpoint is configured */
export function createTracing(
  { tracing: { endpoint, samplePercent } }: Pick<Config, 'tracing'>,
  { log, clock: { now } }: Pick<Context, 'log' | 'clock'>,
): Tracing | undefined {
  if (endpoint === undefined) return undefined;
  let wasFailing = false;
  const sender = createSpanSender({
    endpoint,
    serviceName: 'handle-resolver-proxy',
    onSent() {
      wasFailing = false;
    },
    onFailure(error) {
      // Once for an outage, not for each batch.
      if (!wasFailing) log.warn({ err: error }, 'trace export failed');
      wasFailing = true;
    },
  });
  return { tracer: createTracer({ sender, samplePercent, random: Math.random, now }), close: sender.close };
}

/**
 * Exports spans to a collector as OTLP over HTTP with JSON (OpenTelemetry Protocol 1.x). A failing collector loses spans
 * and affects nothing else.
 */
function createSpanSender(options: SpanSenderOptions): SpanSender {
  const { endpoint, serviceName, onSent, onFailure } = options;
  let buffer: Span[] = [];
  let sending = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;

  async function send(spans: readonly Span[]): Promise<void> {
    try {
      const response = await globalThis.fetch(endpoint, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(exportRequest(spans, serviceName)),
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      await response.arrayBuffer();
      if (response.ok) onSent();
      else onFailure(new Error(`collector responded with ${response.status}`));
    } catch (error) {
      onFailure(error);
    }
  }

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    if (buffer.length === 0) return;
    const spans = buffer;
    buffer = [];
    sending = sending.then(() => send(spans));
  }

  return {
    add(span) {
      if (buffer.length >= MAX_BUFFERED) return;
      buffer.push(span);
      if (buffer.length >= BATCH) flush();
      else timer ??= setTimeout(flush, SEND_EVERY_MS).unref();
    },
    async close() {
      flush();
      await sending;
    },
  };
}

/** The body of an export request. */
function exportRequest(spans: readonly Span[], serviceName: string): unknown {
  return {
    resourceSpans: [
      {
        resource: { attributes: attributesOf({ 'service.name': serviceName }) },
        scopeSpans: [{ scope: { name: 'handle-resolver-proxy' }, spans: spans.map(toOtlp) }],
      },
    ],
  };
}

const toOtlp = (span: Span): unknown => ({
  traceId: span.traceId,
  spanId: span.spanId,
  ...(span.parentSpanId !== undefined && { parentSpanId: span.parentSpanId }),
  name: span.name,
  kind: KIND[span.kind],
  startTimeUnixNano: nanoseconds(span.startedAt),
  endTimeUnixNano: nanoseconds(span.endedAt),
  attributes: attributesOf(span.attributes),
  status: { code: span.isFailure ? STATUS_ERROR : STATUS_UNSET },
});

/** A string, as JSON in OTLP has 64-bit integers: they exceed the exact range of a number. */
const nanoseconds = (ms: number): string => (BigInt(Math.round(ms * 1000)) * 1000n).toString();

const attributesOf = (attributes: Span['attributes']): unknown[] =>
  Object.entries(attributes).map(([key, value]) => ({
    key,
    value: typeof value === 'number' ? { intValue: String(value) } : { stringValue: value },
  }));
