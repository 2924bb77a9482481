// Exports spans to a collector by OTLP/HTTP with JSON.

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

export interface SpanSender {
  add: (span: Span) => void;
  /** Exports the buffered spans for at most a second. */
  close: () => Promise<void>;
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
 * Exports spans to a collector by OTLP/HTTP with JSON (OpenTelemetry Protocol 1.x). A collector failure loses
 * only spans. `onSent` is called when a batch has been exported and the buffer is at most half full; `onDropped`
 * with the number of spans lost, and the reason.
 */
export function createSpanSender(
  endpoint: string,
  onSent: () => void,
  onDropped: (count: number, reason: unknown) => void,
): SpanSender {
  let buffer: Span[] = [];
  let sending: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  const closing = new AbortController();

  async function send(spans: readonly Span[]): Promise<void> {
    try {
      const response = await globalThis.fetch(endpoint, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(exportRequest(spans)),
        redirect: 'error',
        signal: AbortSignal.any([closing.signal, AbortSignal.timeout(TIMEOUT_MS)]),
      });
      await response.body?.cancel();
      if (!response.ok) throw new Error(`collector responded with ${response.status}`);
      if (buffer.length <= MAX_BUFFERED / 2) onSent();
    } catch (error) {
      onDropped(spans.length, error);
    }
  }

  /** Sends one batch at a time, because spans that wait for a slow collector are counted in the buffer only. */
  async function sendAll(): Promise<void> {
    while (buffer.length > 0 && !closing.signal.aborted) {
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
    add(span) {
      if (buffer.length >= MAX_BUFFERED) onDropped(1, new Error('the collector is too slow'));
      else if (buffer.push(span) >= BATCH) flush();
      else timer ??= setTimeout(flush, SEND_EVERY_MS).unref();
    },
    async close() {
      flush();
      const late = setTimeout(() => {
        closing.abort();
      }, CLOSE_MS);
      await sending;
      clearTimeout(late);
    },
  };
}

/** Returns the body of an export request. */
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

const toOtlp = (span: Span): unknown => ({
  traceId: span.traceId,
  spanId: span.spanId,
  ...(span.parentSpanId !== undefined && { parentSpanId: span.parentSpanId }),
  name: span.name,
  kind: KIND[span.kind],
  startTimeUnixNano: nanoseconds(span.startedAt),
  endTimeUnixNano: nanoseconds(span.endedAt),
  attributes: otlpAttributes(span.attributes),
  status: { code: span.isFailure ? STATUS_ERROR : STATUS_UNSET },
});

/**
 * Returns a string, because OTLP/JSON encodes 64-bit integers as strings; they exceed a number's exact range.
 */
const nanoseconds = (ms: number): string => (BigInt(Math.round(ms * 1000)) * 1000n).toString();

const otlpAttributes = (attributes: Span['attributes']): unknown[] =>
  Object.entries(attributes).map(([key, value]) => ({
    key,
    value: typeof value === 'number' ? { intValue: String(value) } : { stringValue: value },
  }));
