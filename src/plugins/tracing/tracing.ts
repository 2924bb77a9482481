// Starts tracing: spans of requests and of their calls, exported to a collector.
import { AsyncLocalStorage } from 'node:async_hooks';
import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Started } from '../../plugin.js';
import { onceAMinute } from '../../clock.js';
import type { Host } from '../../host.js';
import type { RequestSpan, Spans } from '../../hooks.js';
import { createSender } from '../../upstream/connections.js';
import { fetchRemedy } from '../../upstream/failure.js';
import type { TracingConfig } from './plugin.js';

const REMEDY = 'check that a collector responds at tracing.endpoint';

export function start(
  host: Host,
  { tracing: { endpoint = '', samplePercent } }: TracingConfig,
): Pick<Required<Started>, 'spans' | 'close'> {
  const { log, metrics } = host;
  let isLogged = false;
  let dropped = 0;
  function onSent(): void {
    if (!isLogged) return;
    log.info({ dropped }, 'traces are exported again');
    isLogged = false;
    dropped = 0;
  }
  const logFailure = onceAMinute(host.clock, (_count, err: unknown) => {
    isLogged = true;
    const remedy = fetchRemedy(err, 'tracing.endpoint') ?? REMEDY;
    log.warn({ err, remedy }, 'trace export failed');
  });
  function onDropped(count: number, err: unknown): void {
    logFailure(err);
    dropped += count;
    metrics.countDroppedTelemetry('trace', count);
  }
  const sender = createSpanSender(endpoint, onSent, onDropped);
  const storage = new AsyncLocalStorage<OpenSpan>();
  return {
    spans: createTracer(samplePercent, host, storage, sender),
    async close() {
      await sender.close();
      // An enabled AsyncLocalStorage slows down each promise of the process.
      storage.disable();
    },
  };
}

interface OpenSpan extends RequestSpan {
  spanId: string;
  isSampled: boolean;
  attributes: Record<string, string | number>;
  send: (name: string, isFailure: boolean) => void;
}

/** Creates spans in the caller's W3C trace; `samplePercent` is for requests without a trusted `traceparent`. */
function createTracer(
  samplePercent: number,
  { isTrustedProxy, clock: { wall: now } }: Host,
  storage: AsyncLocalStorage<OpenSpan>,
  sender: ReturnType<typeof createSpanSender>,
): Spans {
  function open(header?: string): OpenSpan {
    const parent = readTraceParent(header);
    const { traceId = randomHex(16), isSampled = Math.random() * 100 < samplePercent } = parent ?? {};
    const attributes: OpenSpan['attributes'] = {};
    const started = { traceId, spanId: randomHex(8), startedAt: now(), attributes };
    return {
      ...started,
      isSampled,
      describe(more) {
        for (const [name, value] of Object.entries(more)) attributes[name] = cut(value);
      },
      send(name, isFailure) {
        if (!isSampled) return;
        const above = parent && { parentSpanId: parent.spanId };
        sender.add({ ...started, ...above, name, kind: 'server', endedAt: now(), isFailure });
      },
    };
  }

  return {
    wrap: (listener) =>
      function traced(req, res) {
        // Any other client could have each of its requests traced.
        const isTrusted = isTrustedProxy(req.socket.remoteAddress ?? '');
        const span = open(isTrusted ? req.headers['traceparent']?.toString() : undefined);
        // Runs after the other `close` listeners, which add attributes.
        if (span.isSampled) {
          // A forwarded read has as many others as Node expects.
          res.setMaxListeners(res.getMaxListeners() + 1);
          res.once('close', () => queueMicrotask(() => sendRequest(span, req, res)));
        }
        return storage.run(span, listener, req, res);
      },
    run(name, work) {
      const span = open();
      const end = (isFailure: boolean): void => span.send(name, isFailure);
      return storage.run(span, () => work({ ...span, end }));
    },
    current: () => storage.getStore(),
    addCall({ name, durationMs, result, isFailure }) {
      const request = storage.getStore();
      if (request?.isSampled !== true) return;
      const { traceId, spanId: parentSpanId } = request;
      const endedAt = now();
      const times = { startedAt: endedAt - durationMs, endedAt };
      const attributes = { 'handle_proxy.outcome': result };
      const spanId = randomHex(8);
      sender.add({ traceId, spanId, parentSpanId, name, kind: 'client', ...times, attributes, isFailure });
    },
  };
}

/** Paths and handles have up to 16 KiB; spans wait in memory. */
const MAX_ATTRIBUTE_CHARS = 1024;

/** Copies the text, because a slice would keep all of it in memory. */
const cut = (value: string | number): string | number =>
  typeof value === 'string' && value.length > MAX_ATTRIBUTE_CHARS
    ? Buffer.from(value.slice(0, MAX_ATTRIBUTE_CHARS)).toString()
    : value;

function sendRequest(span: OpenSpan, { method = '' }: IncomingMessage, { statusCode }: ServerResponse): void {
  const ofHttp = { 'http.request.method': method, 'http.response.status_code': statusCode };
  Object.assign(span.attributes, { ...ofHttp, ...span.attributes });
  span.send(method, statusCode >= 500);
}

const ALL_ZEROS = /^0+$/;

/** Returns undefined for an invalid header, which starts a new trace (W3C Trace Context §2.2, §4.3). */
export function readTraceParent(header: string | undefined) {
  const match = /^(?!ff)[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(?:-.*)?$/.exec(header ?? '');
  const [, traceId = '', spanId = '', flags = ''] = match ?? [];
  if (match === null || ALL_ZEROS.test(traceId) || ALL_ZEROS.test(spanId)) return undefined;
  return { traceId, spanId, isSampled: (parseInt(flags, 16) & 1) === 1 };
}

const randomHex = (bytes: number): string => randomBytes(bytes).toString('hex');

interface Span {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  /** `server` for a received request, `client` for a sent request. */
  kind: 'server' | 'client';
  startedAt: number;
  endedAt: number;
  attributes: Readonly<Record<string, string | number>>;
  isFailure: boolean;
}

const NAME = 'handle-resolver-proxy';
const KIND = { server: 2, client: 3 } as const;
const STATUS_UNSET = 0;
const STATUS_ERROR = 2;
const BATCH = 512;
const SEND_EVERY_MS = 1000;
const TIMEOUT_MS = 5000;
/** Maximum spans buffered while the collector is slow or unreachable; further spans are dropped. */
const MAX_BUFFERED = 4096;
const CLOSE_MS = 1000;

/**
 * Exports spans by OTLP/HTTP with JSON (OpenTelemetry Protocol 1.x). `onSent` is called when a batch has been exported
 * and the buffer is at most half full; `onDropped` with the number of spans lost.
 */
function createSpanSender(
  endpoint: string,
  onSent: () => void,
  onDropped: (count: number, reason: unknown) => void,
) {
  let buffer: Span[] = [];
  let sending: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isLate = false;
  const outgoing = createSender();

  async function send(spans: readonly Span[]): Promise<void> {
    try {
      const headers = { 'Content-Type': 'application/json' };
      const request = { method: 'POST', headers, body: JSON.stringify(exportRequest(spans)) };
      const { ok, status } = await outgoing.send(endpoint, request, TIMEOUT_MS);
      if (!ok) throw new Error(`collector responded with ${status}`);
      if (buffer.length <= MAX_BUFFERED / 2) onSent();
    } catch (error) {
      onDropped(spans.length, error);
    }
  }

  /** Sends one batch at a time, because spans that wait for a slow collector are counted in the buffer only. */
  async function sendAll(): Promise<void> {
    while (buffer.length > 0 && !isLate) {
      const spans = buffer.slice(0, BATCH);
      buffer = buffer.slice(BATCH);
      await send(spans);
    }
    sending = undefined;
  }

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    sending ??= sendAll();
  }

  return {
    add(span: Span): void {
      if (buffer.length >= MAX_BUFFERED) onDropped(1, new Error('the collector is too slow'));
      else if (buffer.push(span) >= BATCH) flush();
      else timer ??= setTimeout(flush, SEND_EVERY_MS).unref();
    },
    /** Exports the buffered spans for at most a second. */
    async close(): Promise<void> {
      flush();
      const late = setTimeout(() => {
        isLate = true;
        void outgoing.close();
      }, CLOSE_MS);
      await sending;
      clearTimeout(late);
      await outgoing.close();
    },
  };
}

function exportRequest(spans: readonly Span[]): unknown {
  return {
    resourceSpans: [
      {
        resource: { attributes: otlpAttributes({ 'service.name': NAME }) },
        scopeSpans: [{ scope: { name: NAME }, spans: spans.map(toOtlp) }],
      },
    ],
  };
}

const toOtlp = ({ kind, startedAt, endedAt, attributes, isFailure, ...ids }: Span): unknown => ({
  ...ids,
  kind: KIND[kind],
  startTimeUnixNano: nanoseconds(startedAt),
  endTimeUnixNano: nanoseconds(endedAt),
  attributes: otlpAttributes(attributes),
  status: { code: isFailure ? STATUS_ERROR : STATUS_UNSET },
});

/** OTLP/JSON encodes 64-bit integers as strings, because they exceed the exact range of numbers. */
const nanoseconds = (ms: number): string => (BigInt(Math.round(ms * 1000)) * 1000n).toString();

const otlpAttributes = (attributes: Span['attributes']): unknown[] =>
  Object.entries(attributes).map(([key, value]) => ({
    key,
    value: typeof value === 'number' ? { intValue: String(value) } : { stringValue: value },
  }));
