// Reports each request once, when its response has ended.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type RequestContext, type Result, contextOf, requestIdOf } from './context.js';

interface AnsweredRequest {
  family: RequestContext['family'];
  method: string;
  handle: string | undefined;
  path: string;
  status: number;
  result: Result;
  ms: number;
  requestId: string;
  /** Of an error: its code, and for the operator what caused it and what to do. */
  code?: string;
  cause?: string;
  remedy?: string | undefined;
  /** Where requests are traced. */
  traceId?: string;
}

/** The span of a request, which gets its result as attributes. */
interface RequestSpan {
  readonly traceId: string;
  describe: (attributes: Record<string, string | number>) => void;
}

interface RequestLogDeps {
  /** Gets neither headers nor query, so no credentials. */
  onAnswered: (request: AnsweredRequest, req: IncomingMessage) => void;
  currentTrace?: (() => RequestSpan | undefined) | undefined;
}

/** Reports the request when it ends; its context must exist. */
export type RequestLog = (req: IncomingMessage, res: ServerResponse) => void;

export function createRequestLog({ onAnswered, currentTrace }: RequestLogDeps): RequestLog {
  return function requestLog(req, res) {
    const { method = '' } = req;
    const startedAt = performance.now();
    const trace = currentTrace?.();
    res.once('close', () => {
      const { family, target, handle, result, failure } = contextOf(res);
      const ms = Math.round((performance.now() - startedAt) * 1000) / 1000;
      trace?.describe({
        'url.path': shownPath(target.path),
        'handle_proxy.family': family,
        'handle_proxy.result': result,
        ...(handle !== undefined && { 'handle_proxy.handle': handle }),
      });
      const request = {
        family,
        method,
        handle,
        path: shownPath(target.path),
        status: res.statusCode,
        result,
        ms,
        requestId: requestIdOf(res),
        ...(failure && { code: failure.code, ...failure.diagnosis }),
        ...(trace && { traceId: trace.traceId }),
      };
      onAnswered(request, req);
    });
  };
}

/** A session is addressed as `this`; its id in the path would be a credential. */
const shownPath = (path: string): string => path.replace(/^(\/api\/sessions\/)(?!this$).+$/is, '$1***');
