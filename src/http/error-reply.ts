// Failures as replies of the record interface: status, headers and JSON, and Express' last error handler.
import type { ErrorRequestHandler, NextFunction, Request, Response } from 'express';
import { ServiceError } from '../errors.js';
import { bodyOfMembers } from './body.js';
import { contextOf, hasContext, requestIdOf } from './context.js';
import { type Reply, sendReply } from './reply.js';
import { REQUEST_ID } from './request-id.js';

/** Reports unexpected errors: bugs, not failures of the upstream or of the caller. */
export type ReportUnexpected = (error: unknown, requestId?: string) => void;

/**
 * `{"responseCode":2,"message":…,"handle":…}`. A bad request (code 4) other than 412 names no handle, as on a Handle
 * server. What the upstream answered is passed on in its own form.
 */
export function renderError(
  failure: ServiceError,
  { handle, requestId }: { handle?: string | undefined; requestId?: string | undefined } = {},
): Reply {
  const answer = failure.upstreamAnswer;
  const headers = {
    'Cache-Control': 'no-store',
    ...optional('Retry-After', answer?.retryAfter ?? failure.retryAfterSeconds?.toString()),
    ...optional(REQUEST_ID, requestId),
    ...optional('WWW-Authenticate', answer?.challenge),
  };
  if (answer !== undefined) {
    const named = answer.namesHandle ? handle : undefined;
    return { status: answer.status, headers, json: bodyOfMembers(answer.members, named) };
  }
  const { status, responseCode, message } = failure;
  const named = responseCode === 2 || failure.code === 'CONDITION_FAILED' ? handle : undefined;
  return { status, headers, json: bodyOfMembers({ responseCode, message }, named) };
}

const optional = (name: string, value: string | undefined): Record<string, string> =>
  value === undefined ? {} : { [name]: value };

/** Reports an unexpected error and turns it into INTERNAL. */
export function asServiceError(
  error: unknown,
  onUnexpected: ReportUnexpected,
  requestId?: string,
): ServiceError {
  if (error instanceof ServiceError) return error;
  onUnexpected(error, requestId);
  return new ServiceError('INTERNAL', { cause: error });
}

/** The result of a failed request, for log and metrics. */
export const resultOfError = (status: number): 'error' | 'invalid' => (status >= 500 ? 'error' : 'invalid');

export function createErrorReply({ onUnexpected }: { onUnexpected: ReportUnexpected }): ErrorRequestHandler {
  return async function errorReply(
    error: unknown,
    req: Request,
    res: Response,
    next: NextFunction,
  ): Promise<void> {
    // Without a context the interface is unknown: the guard answers.
    if (!hasContext(res)) {
      next(error);
      return;
    }
    const failure = asServiceError(error, onUnexpected, requestIdOf(res));
    if (res.headersSent) {
      next(failure);
      return;
    }
    const context = contextOf(res);
    const reply = renderError(failure, { handle: context.handle, requestId: requestIdOf(res) });
    context.result = resultOfError(reply.status);
    context.failure = failure;
    await sendReply(req, res, { ...reply, gzipMinBytes: Infinity });
  };
}
