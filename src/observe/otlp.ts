// Sends spans to a collector: OTLP over HTTP, in its JSON form (OpenTelemetry Protocol 1.x).
export interface Span {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  /** Server: a request that came to us. Client: one that we made. */
  kind: 'server' | 'client';
  startedAt: number;
  endedAt: number;
  attributes: Readonly<Record<string, string | number>>;
  isFailure: boolean;
}

export interface SpanSender {
  add: (span: Span) => void;
  /** Sends what is left. */
  close: () => Promise<void>;
}

export interface SpanSenderOptions {
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
/** More than a collector that is away makes us hold; what comes then is dropped. */
const MOST_HELD = 4096;

/** A collector that fails costs its spans, and nothing else. */
export function createSpanSender(options: SpanSenderOptions): SpanSender {
  const { endpoint, serviceName, onSent, onFailure } = options;
  let held: Span[] = [];
  let sending = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;

  async function send(spans: readonly Span[]): Promise<void> {
    try {
      const answer = await globalThis.fetch(endpoint, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(exportRequest(spans, serviceName)),
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      await answer.arrayBuffer();
      if (answer.ok) onSent();
      else onFailure(new Error(`the collector answered ${answer.status}`));
    } catch (error) {
      onFailure(error);
    }
  }

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    if (held.length === 0) return;
    const spans = held;
    held = [];
    sending = sending.then(() => send(spans));
  }

  return {
    add(span) {
      if (held.length >= MOST_HELD) return;
      held.push(span);
      if (held.length >= BATCH) flush();
      else timer ??= setTimeout(flush, SEND_EVERY_MS).unref();
    },
    async close() {
      flush();
      await sending;
    },
  };
}

/** The body of an export request. */
export function exportRequest(spans: readonly Span[], serviceName: string): unknown {
  return {
    resourceSpans: [
      {
        resource: { attributes: attributesOf({ 'service.name': serviceName }) },
        scopeSpans: [{ scope: { name: 'handle-resolver-proxy' }, spans: spans.map(written) }],
      },
    ],
  };
}

const written = (span: Span): unknown => ({
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

/** Beyond what a number holds exactly, so a text, as the JSON form has 64-bit integers. */
const nanoseconds = (ms: number): string => (BigInt(Math.round(ms * 1000)) * 1000n).toString();

const attributesOf = (attributes: Span['attributes']): unknown[] =>
  Object.entries(attributes).map(([key, value]) => ({
    key,
    value: typeof value === 'number' ? { intValue: String(value) } : { stringValue: value },
  }));
