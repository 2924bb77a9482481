// Errors of the redirects: a page for browsers, problem JSON (RFC 9457) for programs, with the same text.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { CATALOGUE, ServiceError } from '../errors.js';
import { handleToPath } from '../handle/handle.js';
import type { Refused } from '../handle/outcome.js';
import { RESPONSE_CODE, isElsewhere } from '../handle/response-codes.js';
import type { PageSender } from '../html/send.js';
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
import type { Namespace } from './locations/other-records.js';
import { problemPage } from './pages.js';

interface ProblemResponse {
  failure: ServiceError;
  handle?: string | undefined;
  /** Contact of the operator of the prefix. */
  contact?: string | undefined;
  /** Headers of a response that caches may store; without them the response has the request id and is not stored. */
  headers?: Record<string, string>;
  sender: PageSender;
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
  if (!prefersJson(req.headers.accept)) {
    // The look-up form of HDLProxy posts to `/`.
    const retryUrl = req.method === 'POST' && handle !== undefined ? `/${handleToPath(handle)}` : '';
    const page = problemPage({ problem, requestId, retryUrl, branding: sender.branding, contact });
    await sender.sendPage(req, res, { ...response, page });
    return;
  }
  await sender.sendText(req, res, {
    ...response,
    contentType: 'application/problem+json',
    text: JSON.stringify(problem),
    headers: { ...sender.securityHeaders, ...response.headers },
  });
}

interface EndOfChain {
  /** The requested handle. */
  handle: string;
  /** The handle after all aliases. */
  end: string;
  isFound: boolean;
  namespace: Namespace | undefined;
}

/** An inactive prefix has no pages and no redirects, not even for handles that exist; its JSON stays (recordings "prefix: inactive, …"). */
export function missingError({ handle, end, isFound, namespace }: EndOfChain): ServiceError | undefined {
  if (namespace?.isInactive === true) return inactiveError(end, namespace.statusMessage);
  return isFound ? undefined : notFoundError(handle, end);
}

function notFoundError(handle: string, end: string): ServiceError {
  const detail =
    end === handle
      ? `The Handle server has no handle ${handle}.`
      : `${handle} is an alias of ${end}, which does not exist.`;
  const { handleNotFound, protocolError } = RESPONSE_CODE;
  const responseCode = hasPrefix(handle) ? handleNotFound : protocolError;
  return new ServiceError('REDIRECT_NOT_FOUND', { detail, responseCode });
}

/** The operator of the prefix has set it inactive. */
function inactiveError(handle: string, statusMessage: string): ServiceError {
  const [prefix = ''] = handle.split('/', 1);
  return new ServiceError('REDIRECT_INACTIVE', {
    detail: statusMessage === '' ? prefix : `${prefix}: ${statusMessage}`,
  });
}

/**
 * Whether the text can be a handle: a prefix begins with a digit (`10.5072`, `2014`, `0.NA`) or has a dot
 * (`loc.music`). Everything else is a wrong API path, such as `/foo/21.T11998/x`: a client that read code 100
 * there would treat the handle as missing.
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

/** Sends errors of all paths outside the APIs; in the form of the record interface for `action=api`. */
export function createSendProblem(deps: { sender: PageSender; onUnexpected: ReportUnexpected }): SendError {
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
