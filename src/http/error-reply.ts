// Turns errors into responses: one function for all interfaces, each with a renderer, and a guard against uncaught errors.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Context } from '../context.js';
import { type ErrorCode, ServiceError, isOfHandleServer } from '../errors.js';
import { RESPONSE_CODE, bodyOfMembers } from '../handle/outcome.js';
import type { HandleRef } from '../handle/handle.js';
import { runToEnd } from '../time-slicer.js';
import { REQUEST_ID, contextOf, findRequestId } from './context.js';
import { NOSNIFF } from './raw-response.js';
import { JSON_TYPE, type Reply, type TextReply, renderBody, sendText } from './reply.js';
import type { Listener } from './route-table.js';

/** Reports unexpected errors: bugs, as opposed to upstream or caller failures. */
export type ReportUnexpected = (error: unknown, requestId?: string) => void;

export const createReportUnexpected =
  ({ log, metrics }: Context, message = 'unexpected error'): ReportUnexpected =>
  (err, requestId) => {
    log.error({ err, requestId }, message);
    metrics.countInternalError();
  };

/** Returns the error headers common to all interfaces. No cache may store errors. */
export function errorHeaders(failure: ServiceError, requestId?: string): Record<string, string> {
  const { upstreamAnswer: answer, retryAfterSeconds, allow } = failure;
  return {
    'Cache-Control': 'no-store',
    ...setIf('Retry-After', answer?.retryAfter ?? retryAfterSeconds?.toString()),
    ...setIf('Allow', allow?.join(', ')),
    ...setIf(REQUEST_ID, requestId),
    ...setIf('WWW-Authenticate', answer?.challenge),
  };
}

/** Problem details (RFC 9457 §3) without `type`, which defaults to `about:blank`. */
export type Problem = ReturnType<typeof problemOf>;

export function problemOf(failure: ServiceError, handle?: string) {
  const { code, title, detail, upstreamAnswer: answer } = failure;
  const answered = answer?.members['responseCode'] ?? RESPONSE_CODE.error;
  return {
    title,
    status: answer?.status ?? failure.status,
    ...(detail !== undefined && { detail }),
    /** Also logged. */
    code,
    /** Handle System response code, which clients expect in every JSON response, especially in a 404. */
    responseCode: answer !== undefined && typeof answered === 'number' ? answered : failure.responseCode,
    ...(handle !== undefined && { handle }),
  };
}

/**
 * Renders `{"responseCode":2,"message":…,"code":…,"handle":…}`. Only code 2, 412 and NO_DELETE include
 * `handle`, as on a Handle server. An upstream error response keeps its members.
 */
export function renderError(
  failure: ServiceError,
  { handle, requestId }: { handle?: string | undefined; requestId?: string | undefined } = {},
): Reply {
  const answer = failure.upstreamAnswer;
  const headers = errorHeaders(failure, requestId);
  if (answer !== undefined) {
    const named = answer.namesHandle ? handle : undefined;
    return { status: answer.status, headers, json: bodyOfMembers(answer.members, named) };
  }
  const { status, responseCode, message, code } = failure;
  const members = { responseCode, message, ...(!isOfHandleServer(failure) && { code }) };
  const named = responseCode === 2 || NAMING.has(code) ? handle : undefined;
  return { status, headers, json: bodyOfMembers(members, named) };
}

const NAMING: ReadonlySet<string> = new Set<ErrorCode>(['PRECONDITION_FAILED', 'NO_DELETE']);

const setIf = (name: string, value: string | undefined): Record<string, string> =>
  value === undefined ? {} : { [name]: value };

/** Reports an unexpected error and converts it to INTERNAL. */
export function asServiceError(
  error: unknown,
  onUnexpected: ReportUnexpected,
  requestId?: string,
): ServiceError {
  if (error instanceof ServiceError) return error;
  onUnexpected(error, requestId);
  return new ServiceError('INTERNAL', { cause: error });
}

/** Returns the result of a failed request, for the log and metrics. */
export function resultOfError(status: number): 'error' | 'refused' | 'invalid' {
  if (status >= 500) return 'error';
  return status === 401 || status === 403 ? 'refused' : 'invalid';
}

/** The request of an error, for its renderer. */
export interface FailedCall {
  req: IncomingMessage;
  res: ServerResponse;
  handle: string | undefined;
  /** Undefined on the admin listener. */
  requestId: string | undefined;
}

export type RenderError = (failure: ServiceError, call: FailedCall) => ErrorReply;

export interface ErrorReply extends TextReply {
  /** Status that decides the result of the request, if not `status`. */
  resultStatus?: number;
}

/** Renders an error in the format of the record interface, as the request asks (JSONP, indented). */
export function renderRecordError(failure: ServiceError, call: FailedCall): ErrorReply {
  const { headers, ...body } = renderError(failure, call);
  return { headers, ...runToEnd(renderBody(body, contextOf(call.res).format)) };
}

/** Sends an error, or throws it if a response has started, because only the guard can end that response. */
export type SendError = (req: IncomingMessage, res: ServerResponse, error: unknown) => Promise<void>;

/** Creates the function that turns errors into responses, and adds them to the context for the log. */
export function createSendError(
  onUnexpected: ReportUnexpected,
  renderFor: RenderError,
  send: (req: IncomingMessage, res: ServerResponse, reply: ErrorReply) => Promise<void> = sendText,
): SendError {
  return async function sendError(req, res, error) {
    const requestId = findRequestId(res);
    const failure = asServiceError(error, onUnexpected, requestId);
    if (res.headersSent) throw failure;
    // The rest of the body may be too long to be discarded (RFC 9110 §15.5.14).
    if (failure.code === 'BODY_TOO_LARGE') res.shouldKeepAlive = false;
    const context = contextOf(res);
    context.failure = failure;
    const call = { req, res, handle: context.handle?.text, requestId };
    const { resultStatus, ...reply } = renderFor(failure, call);
    // Clients may ask for stored responses as often as they like: their absence is no error of the service.
    context.result = failure.code === 'NOT_CACHED' ? 'invalid' : resultOfError(resultStatus ?? reply.status);
    await send(req, res, reply);
  };
}

/** Returns the error with which a judge rejects the handle, if any. */
export type RefusalOfHandle = (
  req: IncomingMessage,
  handle: HandleRef,
) => ServiceError | undefined | Promise<ServiceError | undefined>;

/** A listener that passes unhandled errors to `fail`; Express' default response would expose the stack. */
export type FailingListener = (
  ...given: [...Parameters<Listener>, fail: (error: unknown) => void]
) => unknown;

/** Holds the listener of all requests, which a reload replaces. */
export interface Listening {
  listener: FailingListener;
}

/** Wraps a listener, because an exception or rejected promise in a bare listener would end the process. */
export function guard(current: Listening, onUnexpected: ReportUnexpected): RequestListener {
  return function guarded(req, res) {
    const fail = (error: unknown): void => {
      const requestId = findRequestId(res);
      // A ServiceError was already reported at its origin.
      if (!(error instanceof ServiceError)) onUnexpected(error, requestId);
      if (!res.headersSent) sendInternalError(res, requestId);
      // A truncated response must not look complete.
      else if (!res.writableEnded) res.destroy();
    };
    try {
      const returned = current.listener(req, res, fail);
      if (returned instanceof Promise) returned.catch(fail);
    } catch (error) {
      fail(error);
    }
  };
}

function sendInternalError(res: ServerResponse, requestId: string | undefined): void {
  const { status, headers, body } = completeError(new ServiceError('INTERNAL'), requestId);
  // Headers that the listener set belong to the failed response.
  for (const name of res.getHeaderNames()) res.removeHeader(name);
  res.writeHead(status, headers).end(body);
}

/** Creates a complete error response for use without Express. */
export function completeError(failure: ServiceError, requestId?: string) {
  const { json, ...head } = renderError(failure, { requestId });
  return completeReply({ ...head, contentType: JSON_TYPE, text: json });
}

/** Adds the headers of the body, which depends on no request header. */
export function completeReply({ status, headers, contentType, text }: ErrorReply) {
  const framing = { 'Content-Type': contentType, 'Content-Length': String(Buffer.byteLength(text)) };
  return { status, headers: { ...framing, ...headers, ...NOSNIFF }, body: text };
}
