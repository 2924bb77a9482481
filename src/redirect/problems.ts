// Errors of the redirects: a page for browsers, problem JSON (RFC 9457) for programs, with the same text.
import type { ErrorRequestHandler, NextFunction, Request, Response } from 'express';
import { CATALOGUE, ServiceError } from '../errors.js';
import type { Refused } from '../handle/outcome.js';
import { RESPONSE_CODE } from '../handle/response-codes.js';
import { html } from '../html/html.js';
import type { SitePage } from '../html/layout.js';
import type { PageSender } from '../html/send.js';
import { contextOf, hasContext, requestIdOf } from '../http/context.js';
import { type ReportUnexpected, asServiceError, resultOfError } from '../http/error-reply.js';
import { readParameters } from '../http/query.js';
import { REQUEST_ID } from '../http/request-id.js';
import { prefersJson } from './accept.js';
import { lookUpForm } from './front-page.js';
import { readShow } from './request.js';

/** Problem details (RFC 9457 section 3). `type` is left out, so it is `about:blank`. */
export interface Problem {
  status: number;
  title: string;
  detail?: string;
  handle?: string;
  code?: string;
  /** Clients of a Handle server read it in every JSON response, above all in a 404. */
  responseCode: number;
}

interface ProblemResponse {
  problem: Problem;
  /** Those of a cache entry; without them the response is of this request alone: not stored, and with its id. */
  headers?: Record<string, string>;
  retryAfter?: string | undefined;
}

export async function sendProblem(
  req: Request,
  res: Response,
  { problem, headers, retryAfter, sender }: ProblemResponse & { sender: PageSender },
): Promise<void> {
  const requestId = headers === undefined ? requestIdOf(res) : undefined;
  const response = {
    status: problem.status,
    headers: {
      ...(headers ?? { 'Cache-Control': 'no-store' }),
      ...(requestId !== undefined && { [REQUEST_ID]: requestId }),
      ...(retryAfter !== undefined && { 'Retry-After': retryAfter }),
    },
    variesByAccept: true,
  };
  if (!prefersJson(req.headers.accept)) {
    await sender.sendPage(req, res, { ...response, page: problemPage(problem, requestId) });
    return;
  }
  await sender.sendText(req, res, {
    ...response,
    contentType: 'application/problem+json',
    text: JSON.stringify(problem),
    headers: { ...sender.securityHeaders, ...response.headers },
  });
}

function problemPage({ status, title, detail, handle }: Problem, requestId: string | undefined): SitePage {
  const endsInSlash = handle?.endsWith('/') === true;
  return {
    title,
    main: html`<h1><span class="kind">${status}</span>${title}</h1>
      ${detail === undefined ? undefined : html`<p class="note bad"><bdi>${detail}</bdi></p>`}
      ${endsInSlash ? html`<p>The handle ends with a slash. Try it without.</p>` : undefined}
      <section>${lookUpForm(handle)}</section>
      ${requestId === undefined ? undefined : html`<p class="quiet">Reference: <code>${requestId}</code></p>`}`,
  };
}

/** `handle` is the requested handle, `end` the last of its aliases. */
export function notFoundProblem(handle: string, end: string): Problem {
  const detail =
    end === handle
      ? `The Handle server has no handle ${handle}.`
      : `${handle} is an alias of ${end}, which does not exist.`;
  const { handleNotFound, protocolError } = RESPONSE_CODE;
  const responseCode = hasPrefix(handle) ? handleNotFound : protocolError;
  return { status: 404, title: 'This handle does not exist', detail, responseCode, handle };
}

/**
 * Whether the text can be a handle: a prefix begins with a digit (`10.5072`, `2014`, `0.NA`) or has a dot
 * (`loc.music`). Everything else is a wrong API path, such as `/foo/21.T11998/x`: a client that read code 100
 * there would take the handle for missing.
 */
const hasPrefix = (text: string): boolean => /^(?:\d|[^/]*\.)/.test(text);

const REFERRALS: readonly number[] = [RESPONSE_CODE.notResponsible, 302, 303];

const codeOf = ({ responseCode }: Record<string, unknown>): number =>
  typeof responseCode === 'number' ? responseCode : RESPONSE_CODE.error;

export function refusedProblem(handle: string, { status, members, retryAfter }: Refused): ProblemResponse {
  const responseCode = codeOf(members);
  if (REFERRALS.includes(responseCode)) {
    const detail = handle.split('/', 1)[0] ?? '';
    const title = 'This prefix is not served here';
    return { problem: { status: 404, title, detail, responseCode, handle }, retryAfter: undefined };
  }
  const { message } = members;
  const problem = {
    status: status >= 400 ? status : 502,
    title: 'The Handle server refused the request',
    ...(typeof message === 'string' && { detail: message }),
    responseCode,
    handle,
  };
  return { problem, retryAfter };
}

/** The error handler of all paths outside the APIs. */
export function createRedirectErrorReply({
  sender,
  onUnexpected,
}: {
  sender: PageSender;
  onUnexpected: ReportUnexpected;
}): ErrorRequestHandler {
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
    const failure = asServiceError(fromBodyParser(error), onUnexpected, requestIdOf(res));
    const context = contextOf(res);
    if (res.headersSent || readShow(readParameters(context.target.query)) === 'api') {
      next(failure);
      return;
    }
    context.result = resultOfError(failure.status);
    context.failure = failure;
    await sendProblem(req, res, { ...problemOf(failure, context.handle), sender });
  };
}

function problemOf(failure: ServiceError, handle: string | undefined): ProblemResponse {
  const { upstreamAnswer: answer, message } = failure;
  const { title } = CATALOGUE[failure.code];
  const detail = message.replace(title, '').replace(/^: /, '');
  return {
    problem: {
      status: answer?.status ?? failure.status,
      title,
      ...(detail !== '' && { detail }),
      code: failure.code,
      responseCode: answer === undefined ? failure.responseCode : codeOf(answer.members),
      ...(handle !== undefined && { handle }),
    },
    retryAfter: answer?.retryAfter ?? failure.retryAfterSeconds?.toString(),
  };
}

/** Errors of Express' body parser have a status. */
function fromBodyParser(error: unknown): unknown {
  const { status } = error as { status?: unknown };
  if (error instanceof ServiceError || typeof status !== 'number' || status >= 500) return error;
  return new ServiceError(status === 413 ? 'BODY_TOO_LARGE' : 'BAD_REQUEST', { cause: error });
}
