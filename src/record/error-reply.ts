// The one place where a failure becomes a reply of the record interface.
import type { ErrorRequestHandler, NextFunction, Request, Response } from 'express';
import { ServiceError } from '../errors.js';
import { bodyOfMembers } from '../http/body.js';
import { contextOf, hasContext } from '../http/context.js';
import { sendReply } from '../http/reply.js';

export interface ErrorReplyDeps {
  /** Told of failures that are nobody's fault but ours. */
  onUnexpected: (error: unknown) => void;
}

/** `{"responseCode":2,"message":…,"handle":…}`; a bad request (code 4) other than 412 names no handle, as the server does. */
export function createErrorReply({ onUnexpected }: ErrorReplyDeps): ErrorRequestHandler {
  return async function errorReply(
    error: unknown,
    req: Request,
    res: Response,
    next: NextFunction,
  ): Promise<void> {
    // Without it nobody knows the form of the answer: the guard has one for all.
    if (!hasContext(res)) {
      next(error);
      return;
    }
    const failure = asServiceError(error, onUnexpected);
    if (res.headersSent) {
      next(failure);
      return;
    }
    const context = contextOf(res);
    const status = failure.upstreamAnswer?.status ?? failure.status;
    context.result = status >= 500 ? 'error' : 'invalid';
    await sendReply(req, res, { ...replyOf(failure, context.handle), gzipMinBytes: Infinity });
  };
}

function replyOf(
  failure: ServiceError,
  handle: string | undefined,
): { status: number; json: string; headers: Record<string, string> } {
  const answer = failure.upstreamAnswer;
  const retryAfter = answer?.retryAfter ?? failure.retryAfterSeconds?.toString();
  const headers = {
    'Cache-Control': 'no-store',
    ...optional('Retry-After', retryAfter),
    ...optional('WWW-Authenticate', answer?.challenge),
  };
  if (answer) {
    const named = answer.namesHandle ? handle : undefined;
    return { status: answer.status, json: bodyOfMembers(answer.members, named), headers };
  }
  const named = failure.responseCode === 2 || failure.code === 'CONDITION_FAILED' ? handle : undefined;
  const members = { responseCode: failure.responseCode, message: failure.message };
  return { status: failure.status, json: bodyOfMembers(members, named), headers };
}

const optional = (name: string, value: string | undefined): Record<string, string> =>
  value === undefined ? {} : { [name]: value };

function asServiceError(error: unknown, onUnexpected: (error: unknown) => void): ServiceError {
  if (error instanceof ServiceError) return error;
  onUnexpected(error);
  return new ServiceError('INTERNAL', { cause: error });
}
