// Responds to paths and methods without a route: OPTIONS, 404 and 405.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ServiceError } from '../errors.js';
import { contextOf } from './context.js';
import { answerOptions } from './cors.js';
import type { Route } from './route-table.js';
import { assertPlain, ownerOf, rawHandleOf } from './target.js';

/**
 * OPTIONS gets 200 for any path, as on HDLProxy.
 *
 * @throws ServiceError UNKNOWN_ENDPOINT, BAD_PATH, METHOD_NOT_ALLOWED (recordings "unknown: GET /api/foo",
 * "path: server: …")
 */
export function answerUnrouted(req: IncomingMessage, res: ServerResponse): void {
  const { method = '' } = req;
  const {
    target: { path },
    match,
  } = contextOf(res);
  if (method === 'OPTIONS') {
    answerOptions(req, res, match?.allow ?? ['OPTIONS']);
    return;
  }
  if (match === undefined || haveConditions(match.routes)) {
    throw new ServiceError('UNKNOWN_ENDPOINT', { message: `Unknown HTTP API endpoint ${method} ${path}` });
  }
  // An ambiguous path is rejected, as for forwarded methods, because a server could read it as a different
  // path.
  if (isForwarded(path)) assertPlain(path);
  // A 405 must list the allowed methods (RFC 9110 §15.5.6).
  throw new ServiceError('METHOD_NOT_ALLOWED', { detail: method, allow: match.allow });
}

/** Whether the path belongs to the record interface, but names no handle. */
const isForwarded = (path: string): boolean => ownerOf(path) === 'record' && rawHandleOf(path) === undefined;

/** Whether all routes have a condition; without an unconditional route the path does not exist. */
const haveConditions = (routes: readonly Route[]): boolean => routes.every(({ when }) => when !== undefined);
