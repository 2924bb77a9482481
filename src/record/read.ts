// The read path: anonymous GET and HEAD requests for a record, from the request headers to the reply.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { PreparedCache } from '../cache/prepared-cache.js';
import type { Config } from '../config/schema.js';
import type { Context } from '../context.js';
import { ServiceError } from '../errors.js';
import type { HandleRef } from '../handle/handle.js';
import { selectsAll } from '../handle/value.js';
import {
  type RequestContext,
  type Result,
  type AcceptRequestId,
  putContext,
  requestIdOf,
} from '../http/context.js';
import { type FreshnessRules, freshnessRules } from '../http/cache-headers.js';
import {
  type ReportUnexpected,
  asServiceError,
  createReportUnexpected,
  renderError,
  resultOfError,
} from '../http/error-reply.js';
import type { ScanHeaders } from '../http/fast-headers.js';
import { type Format, type RecordQuery, readFormat, readParameters, readRecordQuery } from '../http/query.js';
import {
  type Reply,
  createEndOfTurn,
  createSendMade,
  representAsWritten,
  representReply,
} from '../http/reply.js';
import type { Representation } from '../http/representation.js';
import type { RequestLog } from '../http/request-log.js';
import { type Target, isList, rawHandleOf, readHandle, readTarget } from '../http/target.js';
import type { Hits } from '../observe/hits.js';
import { type Resolution, existsBy, resultOf } from '../resolver/resolution.js';
import type { Resolver } from '../resolver/resolver.js';
import type { Admit } from '../upstream/caller.js';
import { SMALL_CHARS } from '../http/request-work.js';
import { type Steps, inOneStep, runToEnd } from '../time-slicer.js';
import {
  type RecordReplyDeps,
  charsOf,
  renderResolution,
  renderWhole,
  reportReply,
} from '../http/record-reply.js';
import type { RequestCheck } from '../http/request-check.js';
import {
  type Hit,
  type HitRecipient,
  type PreparedResponse,
  createSendHit,
  currentResponse,
  prepareResponse,
} from '../http/prepared-responses.js';

export interface ReadParts extends Pick<RecordReplyDeps, 'runStepsOf'> {
  scanHeaders: ScanHeaders;
  check: RequestCheck;
  /** Whether a route with a condition takes the request. */
  hasConditionalRoute: (req: IncomingMessage, target: Target) => boolean;
  prepared: PreparedCache;
  /**
   * Finds the redirect from a record in memory, by raw request target; undefined if redirects are disabled.
   */
  findRedirect: ((target: string, now: number) => Hit | undefined) | undefined;
  resolver: Pick<Resolver<unknown>, 'read' | 'refOf'>;
  /** Judges reads that miss in memory. */
  admit: Admit;
  findClient: (req: IncomingMessage) => { network: string };
  acceptRequestId: AcceptRequestId;
  hits: Pick<Hits, 'startTimer' | 'count'>;
  requestLog: RequestLog;
}

interface ReadDeps extends ReadParts, FreshnessRules, RecordReplyDeps {
  onUnexpected: ReportUnexpected;
}

/** Reads a record. Returns false, and leaves the request untouched, if the pipeline handles it. */
export type Read = (req: IncomingMessage, res: ServerResponse) => boolean | Promise<void>;

interface ReadRequest extends HitRecipient {
  req: IncomingMessage;
  res: ServerResponse;
  /** The raw request target. */
  target: string;
}

interface ParsedRequest {
  target: Target;
  format: Format;
}

interface ValidRequest extends ParsedRequest {
  handle: HandleRef;
  query: RecordQuery;
}

/** A rejected request. The handle is undefined if it is invalid, or if the request check failed. */
interface FailedRequest extends ParsedRequest {
  handle: HandleRef | undefined;
  failure: ServiceError;
}

/**
 * Parses a request; undefined for lists, passed-through requests and other routes. A rejected request
 * is parsed for the format of its reply.
 */
function parseRecordRequest(
  req: IncomingMessage,
  { resolver: { refOf }, hasConditionalRoute }: Pick<ReadParts, 'resolver' | 'hasConditionalRoute'>,
  refusal?: ServiceError,
): ValidRequest | FailedRequest | undefined {
  const target = readTarget(req.url ?? '');
  const rawHandle = rawHandleOf(target.path);
  if (rawHandle === undefined) return undefined;
  const parameters = readParameters(target.query);
  if (isList(rawHandle, parameters) || (rawHandle === '' && hasConditionalRoute(req, target)))
    return undefined;
  const parsed = { target, format: readFormat(parameters) };
  if (refusal !== undefined) return { ...parsed, handle: undefined, failure: refusal };
  let handle: HandleRef | undefined;
  try {
    handle = refOf(readHandle(rawHandle));
    const query = readRecordQuery(parameters);
    return query.publicOnly ? { ...parsed, handle, query } : undefined;
  } catch (failure) {
    if (failure instanceof ServiceError) return { ...parsed, handle, failure };
    throw failure;
  }
}

interface Rendered {
  handle: HandleRef;
  resolution: Resolution;
  result: Result;
  reply: Reply;
  /** The representation, or a promise if the body is compressed. */
  made: Representation | Promise<Representation>;
}

/**
 * Creates the read path. Order: headers → rejected? → prepared response current? → target → fresh in memory?
 * → admission → Redis, upstream or stale → reply.
 *
 * Requests with credentials, for private values or for lists pass through Express to the Handle server. Plain
 * redirects from memory are also served here.
 */
export function createRead(config: Pick<Config, 'http'>, context: Context, parts: ReadParts): Read {
  const { scanHeaders, check, resolver, hits } = parts;
  const { now } = context.clock;
  const deps: ReadDeps = {
    ...parts,
    ...freshnessRules(config, context),
    context,
    gzipMinBytes: config.http.gzipMinBytes,
    onUnexpected: createReportUnexpected(context),
  };
  const sendHit = createSendHit(deps);
  const render = createRender(deps);
  const sendReply = createSendReply(deps);

  function read(req: IncomingMessage, res: ServerResponse): boolean | Promise<void> {
    const { method, url: target } = req;
    if ((method !== 'GET' && method !== 'HEAD') || target === undefined) return false;
    const startedAt = hits.startTimer();
    const headers = scanHeaders(req.rawHeaders);
    if (headers.hasCredentials) return false;
    const refusal = check(req, target, headers);
    const at = now();
    const recipient = { method, headers, startedAt };
    const current = refusal === undefined ? currentResponse(parts.prepared, target, at) : undefined;
    if (sendHit(res, current, recipient, at)) return true;
    const request = parseRecordRequest(req, parts, refusal);
    if (request === undefined) {
      return refusal === undefined && sendHit(res, prepareRedirect(target, at), recipient, at);
    }
    const call = { req, res, method, target, headers: { ...headers }, startedAt };
    if ('failure' in request) return sendReply(call, request, Promise.reject(request.failure));
    return resolve(call, request);
  }

  function prepareRedirect(target: string, at: number): PreparedResponse | undefined {
    const hit = deps.findRedirect?.(target, at);
    return hit && prepareResponse(deps.prepared, hit);
  }

  function resolve(call: ReadRequest, request: ValidRequest): true | Promise<void> {
    const { authoritative } = request.query;
    const admit = (): ReturnType<Admit> => deps.admit(call.req, call.res);
    const client = (): string => deps.findClient(call.req).network;
    const found = resolver.read(request.handle, { authoritative, admit, client });
    if (found instanceof Promise) {
      const rendering = found.then((resolution) => render(call, request, resolution));
      return sendReply(call, request, rendering);
    }
    const rendered = render(call, request, found);
    if (rendered instanceof Promise) return sendReply(call, request, rendered);
    const { handle, reply, made } = rendered;
    const hit = { target: call.target, handle, entry: found.entry, status: reply.status };
    // A body that must be compressed is not sent synchronously.
    const prepared = made instanceof Promise ? undefined : prepareResponse(deps.prepared, { ...hit, made });
    if (sendHit(call.res, prepared, call, now())) return true;
    return sendReply(call, request, rendered);
  }

  return read;
}

/** Renders a reply; returns a promise if the record is large. */
type Render = (
  call: ReadRequest,
  request: ValidRequest,
  resolution: Resolution,
) => Rendered | Promise<Rendered>;

function createRender(deps: ReadDeps): Render {
  const { gzipMinBytes, runStepsOf } = deps;

  function* steps(
    { headers: { acceptEncoding } }: ReadRequest,
    request: ValidRequest,
    resolution: Resolution,
  ): Steps<Rendered> {
    const reply = yield* renderResolution(resolution, request, deps);
    const made = yield* representReply(reply, { format: request.format, acceptEncoding, gzipMinBytes });
    const { handle, query } = request;
    return { handle, resolution, result: resultOf(resolution, query), reply, made };
  }

  return function render(call, request, resolution) {
    const { handle, query, format } = request;
    const chars = charsOf(resolution);
    if (!selectsAll(query) || format.pretty)
      return runStepsOf(call.res)(steps(call, request, resolution), chars);
    // The whole record is sent as stored, which needs little work.
    const whole = (): Rendered => {
      const reply = renderWhole(resolution, request, deps);
      const { acceptEncoding } = call.headers;
      const made = representAsWritten(reply, { format, acceptEncoding, gzipMinBytes });
      return { handle, resolution, result: resultOf(resolution, query), reply, made };
    };
    return chars <= SMALL_CHARS ? whole() : runStepsOf(call.res)(inOneStep(whole), chars);
  };
}

type SendReply = (
  call: ReadRequest,
  request: ValidRequest | FailedRequest,
  rendered: Rendered | Promise<Rendered>,
) => Promise<void>;

/** Sends individually logged replies: all except synchronous hits. */
function createSendReply(deps: ReadDeps): SendReply {
  const sendMade = createSendMade(deps.context.clock.now);
  const endOfTurn = createEndOfTurn();
  const { requestLog, acceptRequestId, onUnexpected } = deps;

  return async function sendReply(call, request, rendered) {
    const { req, res, target, headers } = call;
    const context = contextFor(request, acceptRequestId(headers.requestId, req));
    putContext(res, context);
    requestLog(req, res);
    try {
      const { handle, resolution, result, reply, made: making } = await rendered;
      Object.assign(context, { result, exists: existsBy(resolution) });
      const made = making instanceof Promise ? await making : making;
      await endOfTurn();
      sendMade(res, reply, made, call);
      reportReply({ handle, resolution, result, target, status: reply.status, made }, deps);
    } catch (error) {
      const failure = asServiceError(error, onUnexpected, requestIdOf(res));
      if (res.headersSent) throw failure;
      const reply = renderError(failure, { handle: request.handle?.text, requestId: requestIdOf(res) });
      context.result = resultOfError(reply.status);
      context.failure = failure;
      const form = { format: request.format, acceptEncoding: undefined, gzipMinBytes: Infinity };
      sendMade(res, reply, await runToEnd(representReply(reply, form)), call);
    }
  };
}

const contextFor = (
  { target, format, handle }: ValidRequest | FailedRequest,
  requestId: string | undefined,
): RequestContext => ({
  family: 'record',
  target,
  match: undefined,
  format,
  handle,
  result: 'local',
  requestId,
});
