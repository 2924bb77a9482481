// An Express app as a listener for any request target.
import type { Express, Request, Response } from 'express';
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
