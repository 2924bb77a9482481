// Exports spans to a collector as OTLP over HTTP with JSON (OpenTelemetry Protocol 1.x).
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

export interface SpanSender {
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

/** A failing collector loses spans and affects nothing else. */
export function createSpanSender(options: SpanSenderOptions): SpanSender {
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
