// Errors of the admin listener as problem JSON (RFC 9457).
import type { Response } from 'express';
import { CATALOGUE, type ErrorCode } from '../errors.js';

/** Without `type`, which is `about:blank` then (RFC 9457 section 3.1.1); `code` is the name in the catalogue. */
export function sendProblem(res: Response, code: ErrorCode, detail: string | undefined): void {
  const { status, title, responseCode } = CATALOGUE[code];
  const problem = { title, status, code, responseCode, detail };
  res.status(status).type('application/problem+json').send(JSON.stringify(problem));
}
