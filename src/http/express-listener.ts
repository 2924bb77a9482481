// Wraps an Express app as a listener for any request target.
import type { Express, Request, RequestHandler, Response } from 'express';
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
