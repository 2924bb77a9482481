// Errors of the admin listener as problem JSON (RFC 9457).
import type { Response } from 'express';
import type { ServiceError } from '../errors.js';
import { errorHeaders, problemOf } from '../http/error-reply.js';

export function sendProblem(res: Response, failure: ServiceError): void {
  const problem = problemOf(failure);
  res
    .status(problem.status)
    .set(errorHeaders(failure))
    .type('application/problem+json')
    .send(JSON.stringify(problem));
}
