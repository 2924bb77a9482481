// GET and HEAD of a record for callers without credentials: all decisions, from the request headers to the reply.
import type { IncomingMessage, ServerResponse } from 'node:http';
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
import { type Reply, createEndOfTurn, createSendMade, representReply } from '../http/reply.js';
import type { Representation } from '../http/representation.js';
import type { RequestLog } from '../http/request-log.js';
import { type Target, isList, rawHandleOf, readHandle, readTarget } from '../http/target.js';
import type { Hits } from '../observe/hits.js';
import type { Resolution } from '../resolver/resolution.js';
import type { Resolver } from '../resolver/resolver.js';
import type { Admit } from '../upstream/caller.js';
import { type Steps, runToEnd } from '../time-slicer.js';
import { isBatch } from './batch/request.js';
import { type RecordReplyDeps, charsOf, renderResolution, reportReply, resultOf } from './record-reply.js';
import type { RequestCheck } from './pipeline.js';
import type { Hit, PreparedResponse, ResponseCache } from './response-cache.js';
import { type PreparedRecipient, createSendPrepared } from './send.js';

export interface ReadParts extends Pick<RecordReplyDeps, 'runStepsOf'> {
  scanHeaders: ScanHeaders;
  check: RequestCheck;
  responses: Pick<ResponseCache, 'currentResponse' | 'prepare'>;
  /** A redirect that memory answers, by the raw request target; undefined where redirects are off. */
  findRedirect: ((target: string, now: number) => Hit | undefined) | undefined;
  resolver: Pick<Resolver<unknown>, 'read' | 'refOf'>;
  /** Called for reads that memory does not answer. */
  admit: Admit;
  acceptRequestId: AcceptRequestId;
  hits: Pick<Hits, 'startTimer' | 'count'>;
  requestLog: RequestLog;
}

interface ReadDeps extends ReadParts, FreshnessRules, Omit<RecordReplyDeps, 'responses'> {
  onUnexpected: ReportUnexpected;
}

/** False when another part must answer the request, which is untouched then. */
export type Read = (req: IncomingMessage, res: ServerResponse) => boolean | Promise<void>;

interface ReadRequest extends TimedRecipient {
  req: IncomingMessage;
  res: ServerResponse;
  /** Raw request target. */
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

/** The handle is undefined when the path names none, or when the request is refused. */
interface FailedRequest extends ParsedRequest {
  handle: HandleRef | undefined;
  failure: ServiceError;
}

/**
 * Undefined for batches, for what is passed through to the Handle server, and for other interfaces. A refused request is parsed
 * for the form of its reply.
 */
function parseRecordRequest(
  rawTarget: string,
  refOf: (text: string) => HandleRef,
  refusal?: ServiceError,
): ValidRequest | FailedRequest | undefined {
  const target = readTarget(rawTarget);
  const rawHandle = rawHandleOf(target.path);
  if (rawHandle === undefined) return undefined;
  const parameters = readParameters(target.query);
  if (isList(rawHandle, parameters) || (rawHandle === '' && isBatch(parameters))) return undefined;
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
  /** A promise when it is compressed. */
  made: Representation | Promise<Representation>;
}

/**
 * headers → refused? → prepared response current? → target → fresh in memory? → traffic rules → Redis, upstream or stale
 * → reply.
 *
 * Express keeps what passes through to the Handle server (requests with credentials, for private values, for lists).
 * Redirects are answered here where memory has the record and nothing else takes part.
 */
export function createRead(config: Pick<Config, 'http'>, context: Context, parts: ReadParts): Read {
  const { scanHeaders, check, responses, resolver, hits } = parts;
  const { now } = context.clock;
  const deps: ReadDeps = {
    ...parts,
    ...freshnessRules(config),
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
    const current = refusal === undefined ? responses.currentResponse(target, at) : undefined;
    if (sendHit(res, current, recipient, at)) return true;
    const request = parseRecordRequest(target, resolver.refOf, refusal);
    if (request === undefined) {
      return refusal === undefined && sendHit(res, prepareRedirect(target, at), recipient, at);
    }
    const call = { req, res, method, target, headers: { ...headers }, startedAt };
    if ('failure' in request) return sendReply(call, request, Promise.reject(request.failure));
    return resolve(call, request);
  }

  function prepareRedirect(target: string, at: number): PreparedResponse | undefined {
    const hit = deps.findRedirect?.(target, at);
    return hit && responses.prepare(hit);
  }

  function resolve(call: ReadRequest, request: ValidRequest): true | Promise<void> {
    const { authoritative } = request.query;
    const admit = (): ReturnType<Admit> => deps.admit(call.req, call.res);
    const found = resolver.read(request.handle, { authoritative, admit });
    if (found instanceof Promise) {
      const rendering = found.then((resolution) => render(call, request, resolution));
      return sendReply(call, request, rendering);
    }
    const rendered = render(call, request, found);
    if (rendered instanceof Promise) return sendReply(call, request, rendered);
    const { handle, reply, made } = rendered;
    const hit = { target: call.target, handle: handle.text, entry: found.entry, status: reply.status };
    // A body that is compressed first is not sent synchronously.
    const prepared = made instanceof Promise ? undefined : responses.prepare({ ...hit, made });
    if (sendHit(call.res, prepared, call, now())) return true;
    return sendReply(call, request, rendered);
  }

  return read;
}

interface TimedRecipient extends PreparedRecipient {
  startedAt: number | undefined;
}

type SendHit = (
  res: ServerResponse,
  prepared: PreparedResponse | undefined,
  recipient: TimedRecipient,
  now: number,
) => boolean;

/** Sends and reports a prepared response; false when there is none in the encoding of this caller. */
function createSendHit({ hits, acceptRequestId, ...deps }: ReadDeps): SendHit {
  const sendPrepared = createSendPrepared(deps);
  return function sendHit(res, prepared, recipient, now) {
    const status = prepared && sendPrepared(res, prepared, recipient, now);
    if (prepared === undefined || status === undefined) return false;
    const { method, headers, startedAt } = recipient;
    const { family, handle, target } = prepared;
    // Nearly always the prepared response itself, which log and metrics recognise.
    const isUsual = method === prepared.method && status === prepared.status;
    const answered = isUsual ? prepared : { family, handle, target, method, status };
    hits.count(answered, acceptRequestId(headers.requestId, res.req), startedAt);
    return true;
  };
}

/** A promise where the record is large. */
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
    const rendering = steps(call, request, resolution);
    // The whole record is sent as it is stored.
    const isAsStored = selectsAll(request.query) && !request.format.pretty;
    return isAsStored ? runToEnd(rendering) : runStepsOf(call.res)(rendering, charsOf(resolution));
  };
}

type SendReply = (
  call: ReadRequest,
  request: ValidRequest | FailedRequest,
  rendered: Rendered | Promise<Rendered>,
) => Promise<void>;

/** Replies with a log line of their own: all but synchronous hits. */
function createSendReply(deps: ReadDeps): SendReply {
  const sendMade = createSendMade(deps.context.clock.now);
  const endOfTurn = createEndOfTurn();
  const { requestLog, acceptRequestId, onUnexpected } = deps;

  return async function sendReply(call, request, rendered) {
    const { req, res, target, headers } = call;
    const context = { ...contextFor(request), requestId: acceptRequestId(headers.requestId, req) };
    putContext(res, context);
    requestLog(req, res);
    try {
      const { handle, resolution, result, reply, made: making } = await rendered;
      context.result = result;
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

const contextFor = ({ target, format, handle }: ValidRequest | FailedRequest): RequestContext => ({
  family: 'record',
  target,
  match: undefined,
  format,
  result: 'local',
  ...(handle !== undefined && { handle }),
});
