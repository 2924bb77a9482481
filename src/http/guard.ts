// Listeners: an uncaught error is confined to its own request, which gets a 500.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { ServiceError } from '../errors.js';
import type { HandleRef } from '../handle/handle.js';
import { JSON_TYPE } from './body.js';
import { hasContext, requestIdOf } from './context.js';
import { type ReportUnexpected, renderError } from './error-reply.js';

/** The guard also handles the rejection of a returned promise. */
export type Listener = (req: IncomingMessage, res: ServerResponse) => unknown;

/** Why a traffic rule refuses this handle in this request. */
export type RefusalOfHandle = (
  req: IncomingMessage,
  handle: HandleRef,
) => ServiceError | undefined | Promise<ServiceError | undefined>;

/** Express calls `fail` with errors that its error handlers do not answer: its own response would show the stack. */
export type FailingListener = (
  ...given: [...Parameters<Listener>, fail: (error: unknown) => void]
) => unknown;

/** Without it an exception in a listener or an unhandled rejection ends the process. */
export function guard(listener: FailingListener, onUnexpected: ReportUnexpected): RequestListener {
  return function guarded(req, res) {
    const fail = (error: unknown): void => {
      const requestId = hasContext(res) ? requestIdOf(res) : undefined;
      // A ServiceError was reported where it was created.
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
  // Headers that the listener has set belong to another response.
  for (const name of res.getHeaderNames()) res.removeHeader(name);
  res.writeHead(status, headers).end(body);
}

/** An error as a complete response, for those that are written without Express. */
export function completeError(
  failure: ServiceError,
  requestId?: string,
): {
  status: number;
  headers: Record<string, string>;
  body: string;
} {
  const { status, json, headers } = renderError(failure, { requestId });
  const framing = { 'Content-Type': JSON_TYPE, 'Content-Length': String(Buffer.byteLength(json)) };
  return { status, headers: { ...framing, ...headers }, body: json };
}
