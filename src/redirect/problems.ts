// Sends redirect errors as a page to browsers and as problem JSON (RFC 9457) to programs.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { CATALOGUE, ServiceError } from '../errors.js';
import { handleToPath } from '../handle/handle.js';
import type { Refused } from '../handle/outcome.js';
import { RESPONSE_CODE, isElsewhere } from '../handle/response-codes.js';
import { contextOf, requestIdOf } from '../http/context.js';
import {
  type ReportUnexpected,
  type SendError,
  asServiceError,
  createSendError,
  errorHeaders,
  problemOf,
  resultOfError,
} from '../http/error-reply.js';
import { readParameters } from '../http/query.js';
import { prefersJson, readShow } from './request.js';
import type { RedirectSender } from './sender.js';

interface ProblemResponse {
  failure: ServiceError;
  handle?: string | undefined;
  /** The prefix operator's contact. */
  contact?: string | undefined;
  /**
   * Headers for a cacheable response; without them, the response is uncacheable and contains the request id.
   */
  headers?: Record<string, string>;
  sender: RedirectSender;
}

export async function sendProblem(
  req: IncomingMessage,
  res: ServerResponse,
  { failure, handle, contact, headers, sender }: ProblemResponse,
): Promise<void> {
  contextOf(res).failure = failure;
  const problem = problemOf(failure, handle);
  const requestId = headers === undefined ? requestIdOf(res) : undefined;
  const response = {
    status: problem.status,
    headers: headers ?? errorHeaders(failure, requestId),
    variesByAccept: true,
  };
  const { pages } = sender;
  if (pages !== undefined && !prefersJson(req.headers.accept)) {
    // HDLProxy's lookup form posts to `/`.
    const retryUrl = req.method === 'POST' && handle !== undefined ? `/${handleToPath(handle)}` : '';
    const html = pages.problem({ failure, handle, requestId, retryUrl, contact });
    await sender.sendHtml(req, res, { ...response, html });
    return;
  }
  await sender.sendText(req, res, {
    ...response,
    contentType: 'application/problem+json',
    text: JSON.stringify(problem),
    headers: { ...sender.securityHeaders, ...response.headers },
  });
}

/** Returns the error for a missing handle. `end`: the handle at the end of the alias chain. */
export function notFoundError(handle: string, end: string): ServiceError {
  const detail =
    end === handle
      ? `The Handle server has no handle ${handle}.`
      : `${handle} is an alias of ${end}, which does not exist.`;
  const { handleNotFound, protocolError } = RESPONSE_CODE;
  const responseCode = hasPrefix(handle) ? handleNotFound : protocolError;
  return new ServiceError('REDIRECT_NOT_FOUND', { detail, responseCode });
}

/**
 * Whether the text can be a handle: a prefix starts with a digit (`10.5072`, `2014`, `0.NA`) or contains a
 * dot (`loc.music`). Anything else, for example `/foo/21.T11998/x`, is a mistyped API path: response code 100
 * would make clients treat the handle as missing.
 */
export const hasPrefix = (text: string): boolean => /^(?:\d|[^/]*\.)/.test(text);

export function refusedError(handle: string, { status, members, retryAfter }: Refused): ServiceError {
  const { responseCode, message } = members;
  if (typeof responseCode === 'number' && isElsewhere(responseCode)) {
    return new ServiceError('REDIRECT_NOT_SERVED', { detail: handle.split('/', 1)[0] ?? '', responseCode });
  }
  return new ServiceError('REDIRECT_REFUSED', {
    ...(typeof message === 'string' && { detail: message }),
    upstreamAnswer: {
      status: status >= 400 ? status : CATALOGUE.REDIRECT_REFUSED.status,
      members,
      namesHandle: true,
      ...(retryAfter !== undefined && { retryAfter }),
    },
  });
}

/**
 * Creates the error sender for all paths outside the APIs. With `action=api` it uses the record interface's
 * format.
 */
export function createSendProblem(deps: {
  sender: RedirectSender;
  onUnexpected: ReportUnexpected;
}): SendError {
  const sendRecordError = createSendError(deps);
  return async function sendProblemOf(req, res, error) {
    const context = contextOf(res);
    if (readShow(readParameters(context.target.query)) === 'api') {
      await sendRecordError(req, res, error);
      return;
    }
    const failure = asServiceError(error, deps.onUnexpected, requestIdOf(res));
    if (res.headersSent) throw failure;
    context.result = resultOfError(failure.status);
    await sendProblem(req, res, { failure, handle: context.handle?.text, sender: deps.sender });
  };
}
