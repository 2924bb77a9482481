// The request of ePIC v2: its route, the handle or prefix in its path, and OPTIONS.
import type { Request, Response } from 'express';
import { ServiceError } from '../errors.js';
import { contextOf } from '../http/context.js';
import { answerPreflight, isPreflight } from '../http/cors.js';
import type { RouteMatch } from '../http/route-table.js';
import { readHandle } from '../http/target.js';
import { send } from './response.js';
import type { V2Id } from './routes.js';

/** `rawHandle` is the path as the client spelled it, without the tolerated trailing slash. */
export interface HandleResource {
  handle: string;
  rawHandle: string;
}

export interface Collection {
  prefix: string;
}

/** @throws ServiceError when nothing is at the path */
function matchOf(res: Response): RouteMatch {
  const { match } = contextOf(res);
  if (match === undefined) {
    throw new ServiceError('UNKNOWN_ENDPOINT', { detail: 'everything is under /api/v2/handles' });
  }
  return match;
}

/** Clients of v2 send a trailing slash, which is ignored after a prefix or a suffix. */
const withoutSlash = (raw: string): string => raw.replace(/\/$/, '');

/** @throws ServiceError when the path is not a prefix */
export const readCollection = (res: Response): Collection => ({
  prefix: readHandle(withoutSlash(matchOf(res).rest)),
});

/**
 * Any slash after that of the prefix, `%2F` or plain, is part of the suffix; `+` is a plus.
 *
 * @throws ServiceError when the path is not a handle
 */
export function readHandleResource(res: Response): HandleResource {
  const raw = matchOf(res).rest;
  const bare = withoutSlash(raw);
  // `P//` cannot mean the collection `P/`: the second slash is the suffix.
  const rawHandle = /^[^/]+\/$/.test(bare) ? raw : bare;
  const handle = readHandle(rawHandle);
  contextOf(res).handle = handle;
  return { handle, rawHandle };
}

/** By the route of its GET. */
const ADVICE: Readonly<Record<string, string>> = {
  v2Prefixes: 'this is the list of prefixes; write to /api/v2/handles/<prefix>/<suffix>',
  v2Search: 'this is a prefix; PUT and DELETE need a suffix after it',
  v2Read: 'this is a handle; POST to /api/v2/handles/<prefix> to have a new one named',
} satisfies Partial<Record<V2Id, string>>;

/** @throws ServiceError UNKNOWN_ENDPOINT, METHOD_REFUSED */
export function readRoute(res: Response): V2Id {
  const match = matchOf(res);
  const { route } = contextOf(res);
  if (route !== undefined) return route.id as V2Id;
  throw new ServiceError('METHOD_REFUSED', {
    detail: ADVICE[match.routes[0]?.id ?? ''] ?? '',
    allow: match.allow,
  });
}

/** Request headers of conditional writes, lists and POST, beside those that every interface allows. */
const REQUEST_HEADERS = [
  'If-Match',
  'If-None-Match',
  'If-Modified-Since',
  'If-Unmodified-Since',
  'Depth',
  'Idempotency-Key',
];

export function answerOptions(req: Request, res: Response): void {
  const { allow } = matchOf(res);
  if (isPreflight(req)) answerPreflight(req, res, REQUEST_HEADERS);
  else send(res, { status: 204, headers: { Allow: allow.join(', ') } });
}
