// Errors of the admin listener as problem JSON (RFC 9457).
import type { Request, RequestHandler, Response } from 'express';
import { ServiceError } from '../errors.js';
import { errorHeaders, problemOf } from '../http/error-reply.js';

export function sendProblem(res: Response, failure: ServiceError): void {
  const problem = problemOf(failure);
  res
    .status(problem.status)
    .set(errorHeaders(failure))
    .type('application/problem+json')
    .send(JSON.stringify(problem));
}

/** The last handler of a path. Express would answer another method with 404. */
export function refuseOtherMethods(...methods: string[]): RequestHandler {
  const allow = [...methods, 'OPTIONS'];
  return function refuseMethod({ method }: Request, res: Response): void {
    if (method !== 'OPTIONS') throw new ServiceError('METHOD_REFUSED', { detail: method, allow });
    res.set('Allow', allow.join(', ')).status(204).end();
  };
}
