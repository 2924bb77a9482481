// A redirect request and its responses: redirects, pages if a plugin renders them, errors as pages or problem JSON.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Host } from '../host.js';
import type { Dependency, PreparedCache } from '../cache/prepared-cache.js';
import type { Config } from '../config/schema.js';
import { CATALOGUE, ServiceError } from '../errors.js';
import { toBytes } from '../handle/bytes.js';
import { type HandleRef, handleToPath, hasPrefix, prefixRecordOf } from '../handle/handle.js';
import { RESPONSE_CODE, type Refused, isElsewhere } from '../handle/outcome.js';
import { HTML_TYPE, escapeText } from '../html/html.js';
import { type Freshness, cacheHeaders, recordLines, varyOf } from '../http/cache-headers.js';
import { type Admit, type RequestContext, contextOf, requestIdOf } from '../http/context.js';
import {
  type ErrorReply,
  type RenderError,
  errorHeaders,
  problemOf,
  renderRecordError,
} from '../http/error-reply.js';
import { prepareResponse } from '../http/prepared-responses.js';
import { linesOf } from '../http/raw-response.js';
import type { AnswerRecord } from '../http/record-reply.js';
import { type ReplyHead, type Representation, type TextReply, sendMade, sendText } from '../http/reply.js';
import type { FromEntry } from '../resolver/resolution.js';
import type { Extensions, HeaderLine } from './extension.js';
import { combineHeaderLines } from './link-header.js';
import { type RedirectQuery, prefersJson, readShow } from './request.js';
import type { RedirectValues } from './values.js';

/** The redirect interface, which each reload creates. */
export interface Redirects {
  config: Config;
  host: Host;
  /** Judges requests that miss in memory, and returns their caller. */
  admit: Admit;
  extensions: Extensions;
  values: RedirectValues;
  answerRecord: AnswerRecord;
  recordFreshness: Freshness;
  redirectFreshness: Freshness;
  prepared: PreparedCache;
  /** Headers that restrict what pages may load. */
  securityHeaders: Readonly<Record<string, string>>;
}

export interface RedirectCall {
  req: IncomingMessage;
  res: ServerResponse;
  context: RequestContext;
  redirects: Redirects;
  query: RedirectQuery;
}

/** Sends text that is compressed if that is worth it. */
export const sendCompressible = ({ req, res, redirects }: RedirectCall, reply: TextReply): Promise<void> =>
  sendText(req, res, { ...reply, gzipMinBytes: redirects.config.http.gzipMinBytes });

/** Returns the cache headers of a response that `resolution` bounds, and their time. */
export function cacheHead(
  { query: { authoritative }, redirects }: RedirectCall,
  resolution: FromEntry,
  freshness: Freshness = redirects.redirectFreshness,
): Required<ReplyHead> {
  const now = redirects.host.clock.now();
  return { headers: cacheHeaders({ resolution, authoritative, now, freshness }), now };
}

interface RecordRedirect extends ReplyHead {
  handle: HandleRef;
  resolution: FromEntry;
  status: number;
  url: string;
  /** The headers of the record and of its typed links. */
  lines: readonly HeaderLine[];
  /** Request headers that affect the URL. */
  varies: readonly string[];
  /** Returns what the redirect depends on besides its record; undefined for a redirect that must not be repeated. */
  dependencyOf: (() => Dependency | undefined) | undefined;
}

/** Sends a redirect. A hit that depends only on its record and on the record of its prefix is prepared. */
export async function sendRedirect(call: RedirectCall, to: RecordRedirect): Promise<void> {
  const { req, res, context, redirects } = call;
  const { handle, resolution, dependencyOf } = to;
  const { host, prepared } = redirects;
  const isRepeatable = isPreparable(call, to);
  const hasLines = host.hooks.recordHeaders.length > 0;
  const dependency = isRepeatable || hasLines ? dependencyOf?.() : undefined;
  const ofRecord =
    hasLines && dependency ? recordLines(host, resolution, [handle, prefixRecordOf(handle)]) : [];
  const made = representRedirect(to, to.varies, [...combineHeaderLines(to.lines).flat(), ...ofRecord]);
  await sendMade(req, res, to, made);
  if (!isRepeatable || dependency === undefined) return;
  const { family, target } = context;
  const { entry } = resolution;
  prepareResponse(prepared, { family, target: target.raw, handle, entry, made, dependency });
}

/** Whether a prepared response may repeat the redirect; it recognises only two redirect statuses. */
const isPreparable = ({ req, context }: RedirectCall, { status, resolution }: RecordRedirect): boolean =>
  (status === 301 || status === 302) &&
  req.method !== 'POST' &&
  context.result === 'hit' &&
  resolution.from === 'memory';

/** Represents a redirect, with a link to the target in the body, as RFC 9110 §15.4 recommends. */
export function representRedirect(
  { status, url }: { status: number; url: string },
  varies: readonly string[] = [],
  lines: readonly string[] = [],
): Representation {
  const link = escapeText(url);
  // Browsers show only the page of `redirectionHeaders`.
  const language = status === 200 ? '<html lang="en">' : '';
  const body = toBytes(
    `<!doctype html>${language}<title>Handle Redirect</title><a href="${link}">${link}</a>\n`,
  );
  return {
    status,
    encoding: 'identity',
    isWorthGzip: false,
    body,
    etag: undefined,
    common: linesOf(['Vary', varyOf(varies), 'Location', url, ...lines]),
    ofBody: linesOf(['Content-Type', HTML_TYPE, 'Content-Length', String(body.length)]),
  };
}

interface RedirectProblem {
  handle: string | undefined;
  /** Undefined for a cacheable response. */
  requestId?: string | undefined;
  /** The prefix operator's contact. */
  contact?: string | undefined;
  /** Headers for a cacheable response; without them, the response is uncacheable and contains the request id. */
  headers?: Record<string, string>;
}

/** Sends an error that the request has met. */
export async function sendRedirectProblem(
  { req, res, context, redirects }: RedirectCall,
  failure: ServiceError,
  problem: RedirectProblem,
): Promise<void> {
  context.failure = failure;
  const requestId = problem.headers === undefined ? requestIdOf(context) : undefined;
  await sendText(req, res, renderRedirectProblem(redirects, req, failure, { ...problem, requestId }));
}

function renderRedirectProblem(
  { config, extensions: { pages }, securityHeaders }: Redirects,
  req: IncomingMessage,
  failure: ServiceError,
  { handle, requestId, contact, headers = errorHeaders(failure, requestId) }: RedirectProblem,
): ErrorReply {
  const problem = problemOf(failure, handle);
  const reply = {
    status: problem.status,
    headers: { ...securityHeaders, ...headers },
    varies: ['Accept'],
    gzipMinBytes: config.http.gzipMinBytes,
  };
  if (pages === undefined || prefersJson(req.headers.accept))
    return { ...reply, contentType: 'application/problem+json', text: JSON.stringify(problem) };
  // HDLProxy's lookup form posts to `/`.
  const retryUrl = req.method === 'POST' && handle !== undefined ? `/${handleToPath(handle)}` : '';
  const text = pages.problem({ failure, handle, requestId, retryUrl, contact });
  return { ...reply, contentType: HTML_TYPE, text };
}

/** Creates the renderer for all paths outside the APIs. With `action=api` it uses the record interface's format. */
export const createRenderError =
  (redirects: Redirects): RenderError =>
  (failure, call) =>
    readShow(contextOf(call.res).parameters) === 'api'
      ? renderRecordError(failure, call)
      : { ...renderRedirectProblem(redirects, call.req, failure, call), resultStatus: failure.status };

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

export function refusedError(handle: string, { status, members, retryAfter }: Refused): ServiceError {
  const { responseCode, message } = members;
  if (typeof responseCode === 'number' && isElsewhere(responseCode))
    return new ServiceError('REDIRECT_NOT_SERVED', { detail: handle.split('/', 1)[0] ?? '', responseCode });
  return new ServiceError('REDIRECT_REFUSED', {
    detail: typeof message === 'string' ? message : undefined,
    upstreamAnswer: {
      status: status >= 400 ? status : CATALOGUE.REDIRECT_REFUSED.status,
      members,
      namesHandle: true,
      retryAfter,
    },
  });
}
