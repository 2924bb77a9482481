// What went wrong, as a page for people or as problem JSON for programs, in the same words.
import type { ErrorRequestHandler, NextFunction, Request, Response } from 'express';
import { CATALOGUE, ServiceError } from '../errors.js';
import type { Refused } from '../handle/outcome.js';
import { RESPONSE_CODE } from '../handle/response-codes.js';
import { contextOf, hasContext } from '../http/context.js';
import { readParameters } from '../http/query.js';
import { prefersJson } from './accept.js';
import type { Followed } from './alias.js';
import { asksForApi } from './query.js';
import type { RoomDeps } from './deps.js';
import { layOut } from '../html/layout.js';
import { type Problem, problemJson, problemPage } from './plain-pages.js';
import { HTML_TYPE, sendText } from '../html/send-page.js';

/** `asked` is what the caller named, `end` what it led to. */
export function notFound(asked: string, end: Followed['end']): Problem {
  const title = 'This handle does not exist';
  const isAlias = end.handle !== asked;
  const detail = isAlias
    ? `${asked} is an alias of ${end.handle}, which does not exist.`
    : `The Handle server knows no ${asked}.`;
  const { handleNotFound, protocolError } = RESPONSE_CODE;
  const responseCode = hasPrefix(asked) ? handleNotFound : protocolError;
  return { status: 404, title, detail, responseCode, handle: asked };
}

/**
 * Whether the text can be a handle: every prefix begins with a digit (`10.5072`, `2014`, `0.NA`) or has a
 * dot (`loc.music`). Anything else is a wrong path of somebody's API, such as `/foo/21.T11998/x`: a client
 * that reads code 100 there would take the handle for missing.
 */
const hasPrefix = (text: string): boolean => /^(?:\d|[^/]*\.)/.test(text);

const REFERRALS: readonly number[] = [RESPONSE_CODE.notResponsible, 302, 303];

function codeIn({ responseCode }: Record<string, unknown>): number {
  return typeof responseCode === 'number' ? responseCode : RESPONSE_CODE.error;
}

/** The Handle server has an answer of its own that is no record. */
export function refused(handle: string, { status, members, retryAfter }: Refused): Problem {
  const responseCode = codeIn(members);
  if (REFERRALS.includes(responseCode)) {
    const prefix = handle.split('/', 1)[0] ?? '';
    return { status: 404, title: 'This prefix is not served here', detail: prefix, responseCode, handle };
  }
  const { message } = members;
  return {
    status: status >= 400 ? status : 502,
    title: 'The Handle server refuses to answer',
    ...(typeof message === 'string' && { detail: message }),
    responseCode,
    handle,
    ...(retryAfter !== undefined && { retryAfter }),
  };
}

/** The failures of all paths that are not of an API. */
export function createRedirectErrorReply(deps: RoomDeps): ErrorRequestHandler {
  return async function redirectErrorReply(
    error: unknown,
    req: Request,
    res: Response,
    next: NextFunction,
  ): Promise<void> {
    if (!hasContext(res)) {
      next(error);
      return;
    }
    const failure = asServiceError(error, deps);
    const context = contextOf(res);
    if (res.headersSent || asksForApi(readParameters(context.target.query))) {
      next(failure);
      return;
    }
    context.result = failure.status >= 500 ? 'error' : 'invalid';
    await sendProblem(req, res, { problem: problemOf(failure, context.handle), deps });
  };
}

function problemOf(failure: ServiceError, handle: string | undefined): Problem {
  const { upstreamAnswer: answer, message } = failure;
  const { title } = CATALOGUE[failure.code];
  const detail = message.replace(title, '').replace(/^: /, '');
  const retryAfter = answer?.retryAfter ?? failure.retryAfterSeconds?.toString();
  return {
    status: answer?.status ?? failure.status,
    title,
    ...(detail !== '' && { detail }),
    code: failure.code,
    responseCode: answer === undefined ? failure.responseCode : codeIn(answer.members),
    ...(handle !== undefined && { handle }),
    ...(retryAfter !== undefined && { retryAfter }),
  };
}

/** Sends a problem. Without headers of a cache entry nobody keeps it. */
export async function sendProblem(
  req: Request,
  res: Response,
  { problem, deps, headers }: { problem: Problem; deps: RoomDeps; headers?: Record<string, string> },
): Promise<void> {
  const { retryAfter, ...told } = problem;
  const isJson = prefersJson(req.headers.accept);
  await sendText(req, res, {
    status: problem.status,
    contentType: isJson ? 'application/problem+json' : HTML_TYPE,
    text: isJson ? problemJson(told) : layOut(problemPage(problem), deps.house),
    headers: {
      ...deps.pageHeaders,
      ...(headers ?? { 'Cache-Control': 'no-store' }),
      ...(retryAfter !== undefined && { 'Retry-After': retryAfter }),
    },
    variesByAccept: true,
    gzipMinBytes: deps.gzipMinBytes,
  });
}

/** The body parser has errors of its own kind, with a status. */
function asServiceError(error: unknown, { onUnexpected }: RoomDeps): ServiceError {
  if (error instanceof ServiceError) return error;
  const status = (error as { status?: unknown }).status;
  if (status === 413) return new ServiceError('BODY_TOO_LARGE', { cause: error });
  if (typeof status === 'number' && status < 500) return new ServiceError('BAD_REQUEST', { cause: error });
  onUnexpected(error);
  return new ServiceError('INTERNAL', { cause: error });
}
