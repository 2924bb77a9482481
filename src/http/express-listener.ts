// Wraps an Express app as a listener for any request target, and an error sender as its error handler.
import type { ErrorRequestHandler, Express, NextFunction, Request, RequestHandler, Response } from 'express';
import { hasContext } from './context.js';
import type { SendError } from './error-reply.js';
import type { FailingListener } from './guard.js';
import { originForm, readTarget } from './target.js';

/** A handler on the admin listener. */
export type AdminHandler = RequestHandler;

/**
 * Converts absolute targets to origin form, because Express cannot parse an
 * absolute URL with an invalid host.
 */
export function expressListener(app: Express): FailingListener {
  return function listen(req, res, fail) {
    const { url: originalUrl = '' } = req;
    if (!originalUrl.startsWith('/'))
      Object.assign(req, { originalUrl, url: originForm(readTarget(originalUrl)) });
    app(req as Request, res as Response, fail);
  };
}

/**
 * Wraps `sendError` as an Express error handler. Without a context the interface is
 * unknown, so the guard responds.
 */
export const toErrorHandler = (sendError: SendError): ErrorRequestHandler =>
  async function errorReply(error: unknown, req: Request, res: Response, next: NextFunction): Promise<void> {
    if (hasContext(res)) await sendError(req, res, error);
    else next(error);
  };
