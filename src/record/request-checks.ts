// Requests that go no further: request lines over the limit, methods that are refused or unknown.
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import { ServiceError } from '../errors.js';
import { contextOf } from '../http/context.js';
import { methodsAt } from './endpoints.js';

const KNOWN_METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS']);

/** TRACE would echo credentials back to scripts (RFC 9110 §9.3.8); other methods are 501 as on the server. */
export interface RefusalDeps {
  maxRequestLineBytes: number;
  /** Our own name in `Via`. */
  pseudonym: string;
  /** Why a request goes no further although nothing is wrong with it. */
  refusalOf?: ((req: Request) => ServiceError | undefined) | undefined;
}

export function createRefusals({ maxRequestLineBytes, pseudonym, refusalOf }: RefusalDeps): RequestHandler {
  return function refusals(req: Request, res: Response, next: NextFunction): void {
    if (req.method.length + req.originalUrl.length + ' HTTP/1.1 '.length > maxRequestLineBytes) {
      throw new ServiceError('REQUEST_LINE_TOO_LONG', {
        detail: `at most ${maxRequestLineBytes} bytes are read`,
      });
    }
    // Our own name coming back: the upstream address leads here (RFC 9110 §7.6.3).
    if (req.headers.via?.includes(pseudonym)) throw new ServiceError('LOOP_DETECTED');
    const refusal = refusalOf?.(req);
    if (refusal) throw refusal;
    if (req.method === 'TRACE') {
      // RFC 9110 §15.5.6.
      res.setHeader('Allow', (methodsAt(contextOf(res).target.path) ?? [...KNOWN_METHODS]).join(', '));
      throw new ServiceError('METHOD_REFUSED', { detail: 'TRACE' });
    }
    if (!KNOWN_METHODS.has(req.method)) {
      throw new ServiceError('UNKNOWN_METHOD', { message: `Unknown method ${req.method}` });
    }
    next();
  };
}

/** A path that nobody answers (recording "unknown: GET /api/foo"). */
export const unknownEndpoint = (method: string, path: string): ServiceError =>
  new ServiceError('UNKNOWN_ENDPOINT', { message: `Unknown HTTP API endpoint ${method} ${path}` });

export function refuseUnknown(req: Request, res: Response): void {
  throw unknownEndpoint(req.method, contextOf(res).target.path);
}
