// Sends the responses of ePIC v2, failures as problem JSON (RFC 9457).
import { STATUS_CODES } from 'node:http';
import type { Response } from 'express';
import type { ServiceError } from '../errors.js';
import { writeJson } from '../handle/json.js';
import { VARY } from '../http/cache-headers.js';
import { contextOf, requestIdOf } from '../http/context.js';
import { exposeHeaders } from '../http/cors.js';
import { asServiceError, errorHeaders, resultOfError } from '../http/error-reply.js';
import type { V2Deps } from './deps.js';

interface Payload {
  status: number;
  headers: Record<string, string>;
  /** Set together with `body`. */
  contentType?: string;
  body?: string;
}

export const JSON_TYPE = 'application/json;charset=utf-8';

/** Responses to a login are never stored. */
export const PRIVATE = { 'Cache-Control': 'no-store' };

/** Sends a v2 response with the headers that all of them have. */
export function send(res: Response, { status, headers, contentType, body }: Payload): void {
  res.status(status);
  res.setHeaders(new Map(Object.entries({ ...headers, Vary: VARY })));
  const bytes = Buffer.from(body ?? '');
  if (contentType !== undefined) res.setHeader('Content-Type', contentType);
  // 204 and 304 have no Content-Length (RFC 9110 §8.6).
  if (status !== 204 && status !== 304) res.setHeader('Content-Length', String(bytes.length));
  exposeHeaders(res);
  res.end(body === undefined ? undefined : bytes);
}

/** Retry-After of a 503 for which no better time is known (s). */
const RETRY_AFTER_SECONDS = '1';

/** Answers with a problem document. An error that is not a `ServiceError` is reported and becomes INTERNAL. */
export function sendProblem(
  { settings, onUnexpected }: Pick<V2Deps, 'settings' | 'onUnexpected'>,
  res: Response,
  error: unknown,
): void {
  const failure = asServiceError(error, onUnexpected, requestIdOf(res));
  if (res.headersSent) {
    res.destroy();
    return;
  }
  const context = contextOf(res);
  const { status, retryAfter } = statusOf(failure);
  context.result = resultOfError(status);
  context.failure = failure;
  if (status === 401) res.setHeader('WWW-Authenticate', `Basic realm="${settings.realm}"`);
  // The rest of a body that is too large is not read.
  if (status === 413) res.setHeader('Connection', 'close');
  const { message: detail, code, responseCode } = failure;
  const title = STATUS_CODES[status] ?? 'Error';
  const { handle } = context;
  const problem = { type: 'about:blank', title, status, detail, code, responseCode };
  send(res, {
    status,
    contentType: 'application/problem+json',
    body: writeJson(handle === undefined ? problem : { ...problem, handle }),
    headers: {
      ...errorHeaders(failure, requestIdOf(res)),
      ...(retryAfter !== undefined && { 'Retry-After': retryAfter }),
    },
  });
}

/** A Handle server that answers 501 or 503 about itself is quoted. */
function statusOf(failure: ServiceError): { status: number; retryAfter: string | undefined } {
  const { upstreamAnswer } = failure;
  const upstreamStatus = upstreamAnswer?.status;
  const status = upstreamStatus === 501 || upstreamStatus === 503 ? upstreamStatus : failure.status;
  const retryAfter = upstreamAnswer?.retryAfter ?? failure.retryAfterSeconds?.toString();
  return { status, retryAfter: status === 503 ? (retryAfter ?? RETRY_AFTER_SECONDS) : retryAfter };
}
