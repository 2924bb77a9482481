// The one place where a failure becomes an answer of ePIC v2: problem JSON (RFC 9457).
import { STATUS_CODES } from 'node:http';
import type { Response } from 'express';
import { ServiceError } from '../errors.js';
import { writeJson } from '../handle/json.js';
import { contextOf } from '../http/context.js';
import { type Payload, send } from './send.js';

export interface ProblemDeps {
  realm: string;
  /** Told of failures that are nobody's fault but ours. */
  onUnexpected: (error: unknown) => void;
}

/** Seconds after which asking again makes sense, where nobody said better. */
const RETRY_AFTER_SECONDS = '1';

export function createProblemReply({
  realm,
  onUnexpected,
}: ProblemDeps): (error: unknown, res: Response) => void {
  return function problemReply(error, res) {
    const failure = asServiceError(error, onUnexpected);
    if (res.headersSent) {
      res.destroy();
      return;
    }
    const context = contextOf(res);
    const { status, retryAfter } = weigh(failure);
    context.result = resultOf(status);
    if (status === 401) res.setHeader('WWW-Authenticate', `Basic realm="${realm}"`);
    if (retryAfter !== undefined) res.setHeader('Retry-After', retryAfter);
    // What is left of a body that is too large is not read.
    if (status === 413) res.setHeader('Connection', 'close');
    send(res, payloadOf(failure, status, context.handle));
  };
}

function payloadOf(failure: ServiceError, status: number, handle: string | undefined): Payload {
  const problem = {
    type: 'about:blank',
    title: STATUS_CODES[status] ?? 'Error',
    status,
    detail: failure.message,
    code: failure.code,
    responseCode: failure.responseCode,
    ...(handle !== undefined && { handle }),
  };
  return {
    status,
    contentType: 'application/problem+json',
    body: writeJson(problem),
    headers: { 'Cache-Control': 'no-store' },
  };
}

/** A server that says of itself that it is busy (503) or cannot do a thing (501) is quoted. */
function weigh(failure: ServiceError): { status: number; retryAfter: string | undefined } {
  const { upstreamAnswer } = failure;
  const said = upstreamAnswer?.status;
  const status = said === 501 || said === 503 ? said : failure.status;
  const known = upstreamAnswer?.retryAfter ?? failure.retryAfterSeconds?.toString();
  return { status, retryAfter: status === 503 ? (known ?? RETRY_AFTER_SECONDS) : known };
}

function resultOf(status: number): 'error' | 'refused' | 'invalid' {
  if (status >= 500) return 'error';
  return status === 401 || status === 403 ? 'refused' : 'invalid';
}

function asServiceError(error: unknown, onUnexpected: (error: unknown) => void): ServiceError {
  if (error instanceof ServiceError) return error;
  onUnexpected(error);
  return new ServiceError('INTERNAL', { cause: error });
}
