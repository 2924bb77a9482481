// Traces: a span for each request, and one for each read that is sent upstream on its behalf.
import { AsyncLocalStorage } from 'node:async_hooks';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { SpanSender } from './otlp.js';
import { type TraceContext, newSpanId, newTraceId, readTraceParent } from './trace-context.js';

export interface RequestTrace {
  readonly traceId: string;
  /** Says more about the request, before it is over. */
  describe: (attributes: Record<string, string | number>) => void;
}

type Listener = (req: IncomingMessage, res: ServerResponse) => unknown;

export interface Tracer {
  /** Traces what a listener does. */
  around: (listener: Listener) => Listener;
  /** The trace of the request that is being answered. */
  current: () => RequestTrace | undefined;
  /** A call that has just ended, made for the request that is being answered. */
  called: (call: { name: string; durationMs: number; result: string; isFailure: boolean }) => void;
}

export interface TracerDeps {
  sender: Pick<SpanSender, 'add'>;
  /** Of the requests that nobody else has decided about: 0 to 100. */
  samplePercent: number;
  random: () => number;
  now: () => number;
}

interface Open extends RequestTrace {
  context: TraceContext;
  attributes: Record<string, string | number>;
}

export function createTracer({ sender, samplePercent, random, now }: TracerDeps): Tracer {
  const storage = new AsyncLocalStorage<Open>();

  function open({ headers }: IncomingMessage): { request: Open; parent: TraceContext | undefined } {
    const parent = readTraceParent(headers['traceparent']?.toString());
    const isSampled = parent?.isSampled ?? random() * 100 < samplePercent;
    const context = { traceId: parent?.traceId ?? newTraceId(), spanId: newSpanId(), isSampled };
    const attributes: Open['attributes'] = {};
    const describe: Open['describe'] = (more) => Object.assign(attributes, more);
    return { request: { traceId: context.traceId, describe, context, attributes }, parent };
  }

  return {
    around: (listener) =>
      function traced(req, res) {
        const { request, parent } = open(req);
        const { context, attributes } = request;
        const startedAt = now();
        const { method = '' } = req;
        res.once('close', () => {
          if (!context.isSampled) return;
          // Whoever describes the request does so when it is over, as this does.
          queueMicrotask(() => {
            sender.add({
              traceId: context.traceId,
              spanId: context.spanId,
              ...(parent !== undefined && { parentSpanId: parent.spanId }),
              name: method,
              kind: 'server',
              startedAt,
              endedAt: now(),
              attributes: {
                'http.request.method': method,
                'http.response.status_code': res.statusCode,
                ...attributes,
              },
              isFailure: res.statusCode >= 500,
            });
          });
        });
        return storage.run(request, listener, req, res);
      },
    current: () => storage.getStore(),
    called({ name, durationMs, result, isFailure }) {
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
