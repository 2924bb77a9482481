// A call of the admin listener: its route, and what the log says of it.
import type { Request, Response } from 'express';
import { type ErrorCode, ServiceError } from '../errors.js';
import { type Route, type RouteMatch, type RouteTable, routeFor } from '../http/route-table.js';
import { readTarget } from '../http/target.js';

interface Call {
  match: RouteMatch | undefined;
  /** Undefined where the path, or the path with this method, is not answered. */
  route: Route | undefined;
  /** The raw text of the parameter of the path. */
  rest: string;
  /** The handle, purge or log level of the call. */
  details?: unknown;
  /** Of the error that it was answered with. */
  code?: ErrorCode;
}

export function readCall(table: RouteTable, req: Request): Call {
  const target = readTarget(req.url);
  const match = table.at(target.path);
  return { match, route: match && routeFor(match, req, target), rest: match?.rest ?? '' };
}

export const callOf = (res: Response): Call => res.locals as Call;

/** @throws ServiceError BAD_REQUEST */
export function decodeParameter(raw: string): string {
  try {
    return decodeURIComponent(raw);
  } catch {
    throw new ServiceError('BAD_REQUEST', { detail: 'the path is not percent-encoded' });
  }
}
