// The route and log fields of an admin call.
import type { Request, Response } from 'express';
import { ServiceError } from '../errors.js';
import { type Route, type RouteTable, type RoutedPath, restOf, routeFor } from './route-table.js';
import { readTarget } from './target.js';

interface Call {
  match: RoutedPath | undefined;
  /** Undefined for an unknown path or an unsupported method. */
  route: Route | undefined;
  /** The path parameter, still percent-encoded. */
  rest: string;
  /** Log field with the call's handle, purge, log level, prefix or import counts. */
  details?: unknown;
  /** Error that the response reports. */
  failure?: ServiceError;
}

export function readCall(table: RouteTable, req: Request): Call {
  const target = readTarget(req.url);
  const match = table.at(target.path);
  return { match, route: match && routeFor(match, req, target), rest: restOf({ match, target }) };
}

export const callOf = (res: Response): Call => res.locals as Call;

/** @throws ServiceError BAD_REQUEST for invalid percent-encoding */
export function decodeParameter(raw: string): string {
  try {
    return decodeURIComponent(raw);
  } catch {
    throw new ServiceError('BAD_REQUEST', { detail: 'the path is not percent-encoded' });
  }
}
