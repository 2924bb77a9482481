// An Express app as a listener for any request target, and its error handler.
import type { ErrorRequestHandler, Express, NextFunction, Request, Response } from 'express';
import { hasContext } from './context.js';
import type { SendError } from './error-reply.js';
import type { FailingListener } from './guard.js';
import { originForm, readTarget } from './target.js';

/** Express parses the URL of a request, and fails for an absolute one whose host is none. */
export function expressListener(app: Express): FailingListener {
  return function listen(req, res, fail) {
    const { url: originalUrl = '' } = req;
    if (!originalUrl.startsWith('/'))
      Object.assign(req, { originalUrl, url: originForm(readTarget(originalUrl)) });
    app(req as Request, res as Response, fail);
  };
}

/** As the error handler of Express. Without a context the interface is unknown: the guard answers. */
export const toErrorHandler = (sendError: SendError): ErrorRequestHandler =>
  async function errorReply(error: unknown, req: Request, res: Response, next: NextFunction): Promise<void> {
    if (hasContext(res)) await sendError(req, res, error);
    else next(error);
  };
