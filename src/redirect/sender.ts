// Sends the responses of the redirect interface: pages if a plugin renders them, errors as pages or problem JSON.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { CATALOGUE, ServiceError } from '../errors.js';
import { handleToPath } from '../handle/handle.js';
import { type Refused, RESPONSE_CODE, isElsewhere } from '../handle/outcome.js';
import { securityHeaders } from '../html/html.js';
import { HTML_TYPE, type TextResponse, type TextSender, createTextSender } from '../html/send.js';
import { contextOf, requestIdOf } from '../http/context.js';
import {
  type FailedCall,
  type RenderError,
  errorHeaders,
  problemOf,
  renderRecordError,
} from '../http/error-reply.js';
import type { TextReply } from '../http/reply.js';
import { readParameters } from '../http/target.js';
import type { Pages } from './extension.js';
import { prefersJson, readShow } from './request.js';

type HtmlResponse = Omit<TextResponse, 'contentType' | 'text'> & { html: string };

export interface RedirectSender extends TextSender {
  /** Undefined if no plugin renders pages; responses are then JSON. */
  pages: Pages | undefined;
  securityHeaders: Readonly<Record<string, string>>;
  /** Sends a page with the security headers. */
  sendHtml: (req: IncomingMessage, res: ServerResponse, response: HtmlResponse) => Promise<void>;
}

export function createSender(pages: Pages | undefined, gzipMinBytes: number): RedirectSender {
  const sender = createTextSender(gzipMinBytes);
  const always = pages?.securityHeaders ?? securityHeaders({});
  return {
    ...sender,
    pages,
    securityHeaders: always,
    sendHtml: (req, res, { html, headers, ...response }) =>
      sender.sendText(req, res, {
        ...response,
        contentType: HTML_TYPE,
        text: html,
        headers: { ...always, ...headers },
      }),
  };
}

interface FailedRedirect extends FailedCall {
  /** The prefix operator's contact. */
  contact?: string | undefined;
  /**
   * Headers for a cacheable response; without them, the response is uncacheable and contains the request id.
   */
  headers?: Record<string, string>;
  sender: RedirectSender;
}

export async function sendProblem(
  failure: ServiceError,
  call: Omit<FailedRedirect, 'requestId'>,
): Promise<void> {
  const { req, res, headers, sender } = call;
  contextOf(res).failure = failure;
  const requestId = headers === undefined ? requestIdOf(res) : undefined;
  await sender.sendText(req, res, renderProblem(failure, { ...call, requestId }));
}

function renderProblem(failure: ServiceError, call: FailedRedirect): TextReply {
  const { req, handle, requestId, contact, headers = errorHeaders(failure, requestId), sender } = call;
  const { pages, securityHeaders } = sender;
  const problem = problemOf(failure, handle);
  const reply = {
    status: problem.status,
    headers: { ...securityHeaders, ...headers },
    varies: ['Accept'],
    gzipMinBytes: sender.gzipMinBytes,
  };
  if (pages === undefined || prefersJson(req.headers.accept))
    return { ...reply, contentType: 'application/problem+json', text: JSON.stringify(problem) };
  // HDLProxy's lookup form posts to `/`.
  const retryUrl = req.method === 'POST' && handle !== undefined ? `/${handleToPath(handle)}` : '';
  const text = pages.problem({ failure, handle, requestId, retryUrl, contact });
  return { ...reply, contentType: HTML_TYPE, text };
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
 * Creates the renderer for all paths outside the APIs. With `action=api` it uses the record interface's
 * format.
 */
export const createRenderError =
  (sender: RedirectSender): RenderError =>
  (failure, call) =>
    readShow(readParameters(contextOf(call.res).target.query)) === 'api'
      ? renderRecordError(failure, call)
      : { ...renderProblem(failure, { ...call, sender }), resultStatus: failure.status };
