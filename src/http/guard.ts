// Keeps a failure inside its own request: that gets 500, and the process goes on.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { ServiceError } from '../errors.js';
import { bodyOfMembers, JSON_TYPE } from './body.js';

/** A promise that it returns is part of the request. */
export type Listener = (req: IncomingMessage, res: ServerResponse) => unknown;

/** Express calls `fail` with errors that its error handlers do not answer: its own answer would show the stack. */
type FailingListener = (...given: [...Parameters<Listener>, fail: (error: unknown) => void]) => unknown;

/** Node ends the process for an exception in a request listener, and for a rejection that nobody handles. */
export function guard(listener: FailingListener, onUnexpected: (error: unknown) => void): RequestListener {
  return function guarded(req, res) {
    const fail = (error: unknown): void => {
      // A ServiceError has been reported where it was made of something unexpected.
      if (!(error instanceof ServiceError)) onUnexpected(error);
      if (!res.headersSent) sendInternalError(res);
      // Half an answer must not be taken for a whole one.
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

function sendInternalError(res: ServerResponse): void {
  const { status, responseCode, message } = new ServiceError('INTERNAL');
  const body = bodyOfMembers({ responseCode, message }, undefined);
  // What the listener had set belongs to another answer.
  for (const name of res.getHeaderNames()) res.removeHeader(name);
  res.writeHead(status, {
    'Content-Type': JSON_TYPE,
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': 'no-store',
  });
  res.end(body);
}
