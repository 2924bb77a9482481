// Confines an uncaught listener error to its request, which gets a 500.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { ServiceError } from '../errors.js';
import type { HandleRef } from '../handle/handle.js';
import { JSON_TYPE } from './body.js';
import { hasContext, requestIdOf } from './context.js';
import { type ReportUnexpected, renderError } from './error-reply.js';
import { NOSNIFF } from './raw-response.js';
import type { TextReply } from './reply.js';
import type { Listener } from './route-table.js';

/** Returns the error with which a judge rejects the handle, if any. */
export type RefusalOfHandle = (
  req: IncomingMessage,
  handle: HandleRef,
) => ServiceError | undefined | Promise<ServiceError | undefined>;

/** A listener that passes unhandled errors to `fail`; Express' default response would expose the stack. */
export type FailingListener = (
  ...given: [...Parameters<Listener>, fail: (error: unknown) => void]
) => unknown;

/** Wraps a listener, because an exception or rejected promise in a bare listener would end the process. */
export function guard(listener: FailingListener, onUnexpected: ReportUnexpected): RequestListener {
  return function guarded(req, res) {
    const fail = (error: unknown): void => {
      const requestId = hasContext(res) ? requestIdOf(res) : undefined;
      // A ServiceError was already reported at its origin.
      if (!(error instanceof ServiceError)) onUnexpected(error, requestId);
      if (!res.headersSent) sendInternalError(res, requestId);
      // A truncated response must not look complete.
      else if (!res.writableEnded) res.destroy();
    };
    try {
      const returned = listener(req, res, fail);
      if (returned instanceof Promise) returned.catch(fail);
    } catch (error) {
      fail(error);
    }
  };
}

function sendInternalError(res: ServerResponse, requestId: string | undefined): void {
  const { status, headers, body } = completeError(new ServiceError('INTERNAL'), requestId);
  // Headers that the listener set belong to the failed response.
  for (const name of res.getHeaderNames()) res.removeHeader(name);
  res.writeHead(status, headers).end(body);
}

interface WholeResponse {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/** Creates a complete error response for use without Express. */
export function completeError(failure: ServiceError, requestId?: string): WholeResponse {
  const { json, ...head } = renderError(failure, { requestId });
  return complete({ ...head, contentType: JSON_TYPE, text: json });
}

/** Adds the headers of the body, which depends on no request header. */
export function complete({ status, headers, contentType, text }: TextReply): WholeResponse {
  const framing = { 'Content-Type': contentType, 'Content-Length': String(Buffer.byteLength(text)) };
  return { status, headers: { ...framing, ...headers, ...NOSNIFF }, body: text };
}
