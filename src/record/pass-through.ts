// Relays requests whose responses are never cached or shared: reads that read.ts does not handle, POST of a
// handle, lists, other endpoints.
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Listener } from '../http/route-table.js';
import { listMembers } from '../handle/handle-list.js';
import { writeJson } from '../handle/json.js';
import { type Hooks, firstOf } from '../hooks.js';
import { CACHE_NAME } from '../http/cache-headers.js';
import { sendReply } from '../http/reply.js';
import { RESPONSE_CODE } from '../handle/response-codes.js';
import { type RequestContext, contextOf } from '../http/context.js';
import type { ChecksLogin } from '../http/identity.js';
import { readParameters, readRecordQuery } from '../http/query.js';
import type { WithBody } from '../http/request-body.js';
import type { RunStepsOf } from '../http/request-work.js';
import type { Encoding } from '../http/representation.js';
import { assertPlain, isList, rawHandleOf, readHandle } from '../http/target.js';
import type { Resolver } from '../resolver/resolver.js';
import type { Steps } from '../time-slicer.js';
import { createAroundMiss } from '../upstream/caller.js';
import { MAX_ANSWER_BYTES } from '../upstream/response.js';
import { parseRecord, recordEtag } from './condition.js';
import { type PublicReadDeps, readPublic } from './public-read.js';
import { type Forward, upstreamTarget } from './forward.js';

import {
  decodeResponseBody,
  parseAnswer,
  peekResponseBody,
  readResponseBody,
  relayResponse,
} from './relay-response.js';

export interface PassThroughDeps {
  withBody: WithBody;
  forward: Forward;
  /** Undefined if the server's records are not cached. */
  resolver?: Pick<Resolver<unknown>, 'learn'>;
  /** Maximum size of a record, which is buffered for its ETag; larger records are rejected. */
  maxRecordBytes: number;
  runStepsOf: RunStepsOf;
}

export type PassThrough = (req: IncomingMessage, res: ServerResponse) => Promise<void>;

export function createPassThrough({
  withBody,
  forward,
  resolver,
  maxRecordBytes,
  runStepsOf,
}: PassThroughDeps): PassThrough {
  return async function passThrough(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const context = contextOf(res);
    if (context.handle === undefined) assertPlain(context.target.path);
    context.result = 'bypass';
    const target = upstreamTarget(context);
    const response = await withBody(req, (body) => forward(req, res, { target, body }));
    if (!isRecord(req, response, context)) {
      const body = await learnFrom(response, context, resolver);
      await relayResponse(response, res, { body });
      return;
    }
    const body = await readResponseBody(response, maxRecordBytes);
    // A body that fails to decode gets no ETag.
    const decoded = await decodeResponseBody(response, body, maxRecordBytes);
    const encoding = isGzip(response.headers) ? 'gzip' : 'identity';
    const etag = decoded && (await runStepsOf(res)(etagFor(decoded, context, encoding), decoded.length));
    await relayResponse(response, res, { body, etag });
  };
}

/** Invalidates the entry if a 404 shows that the handle does not exist. Returns the body if it was read. */
async function learnFrom(
  response: IncomingMessage,
  { handle }: RequestContext,
  resolver: PassThroughDeps['resolver'],
): Promise<Buffer | undefined> {
  if (resolver === undefined || handle === undefined || response.statusCode !== 404) return undefined;
  const body = await peekResponseBody(response, MAX_ANSWER_BYTES);
  const isMissing = body && (await parseAnswer(response, body)).responseCode === RESPONSE_CODE.handleNotFound;
  if (isMissing) await resolver.learn(handle, { exists: false });
  return body;
}

/** Whether the response is a record, which needs an ETag for conditional writes. */
const isRecord = (
  { method }: IncomingMessage,
  { statusCode, headers }: IncomingMessage,
  { handle }: RequestContext,
): boolean =>
  method === 'GET' &&
  handle !== undefined &&
  statusCode === 200 &&
  (headers['content-encoding'] === undefined || isGzip(headers));

const isGzip = (headers: IncomingHttpHeaders): boolean => headers['content-encoding'] === 'gzip';

function* etagFor(
  body: Buffer,
  { handle, target, format }: RequestContext,
  encoding: Encoding,
): Steps<string | undefined> {
  const record = yield* parseRecord(body.toString());
  const selection = readRecordQuery(readParameters(target.query));
  return record && (yield* recordEtag(record, { handle: handle?.text ?? '', selection, format, encoding }));
}

/** Sends a list that a plugin knows; returns false, and sends nothing, if it must come from the server. */
async function sendKnownList(
  req: IncomingMessage,
  res: ServerResponse,
  { hooks, now, gzipMinBytes, runStepsOf }: ForwardReadDeps,
): Promise<boolean> {
  const context = contextOf(res);
  const parameters = readParameters(context.target.query);
  const prefix = parameters.get('prefix') ?? '';
  const hasLogin = req.headers.authorization !== undefined;
  const request = { method: req.method ?? 'GET', hasLogin, parameters };
  const list = firstOf(hooks.list, (find) => find(prefix, request));
  if (list === undefined) return false;
  context.result = 'hit';
  const headers = {
    Age: String(Math.max(0, Math.floor((now() - list.listedAt) / 1000))),
    'Cache-Control': 'no-store',
    'Cache-Status': `${CACHE_NAME}; hit; detail=${list.detail}`,
  };
  const json = writeJson(listMembers(prefix, list.handles, list.page));
  await sendReply(req, res, { status: 200, json, headers, gzipMinBytes, runSteps: runStepsOf(res) });
  return true;
}

export interface ForwardReadDeps extends PublicReadDeps {
  hooks: Pick<Hooks, 'list' | 'aroundMiss'>;
  now: () => number;
  /** Minimum body length for compression (bytes). */
  gzipMinBytes: number;
  passThrough: PassThrough;
  checksLogin: ChecksLogin;
}

/**
 * Forwards reads, even of public values if the request has a login, because a wrong password must get 401.
 * Reads of a handle count as misses unless the server checks the login.
 */
export function createForwardRead(deps: ForwardReadDeps): Listener {
  const { passThrough, checksLogin } = deps;
  const aroundMiss = createAroundMiss(deps.hooks.aroundMiss);
  return async function forwardRead(req: IncomingMessage, res: ServerResponse): Promise<void> {
    parseHandle(res, deps.resolver);
    const { handle, caller } = contextOf(res);
    if (handle === undefined && (await sendKnownList(req, res, deps))) return;
    if (await readPublic(req, res, deps)) return;
    if (handle === undefined || checksLogin(handle, req.headers.authorization)) {
      await passThrough(req, res);
      return;
    }
    const forward = async (): Promise<void> => {
      const closed = new Promise<void>((resolve) => res.once('close', resolve));
      await passThrough(req, res);
      await closed;
    };
    // A client that disconnects early learns nothing, so the result does not count.
    const isAnswered = (): boolean => res.writableFinished && res.statusCode < 500;
    await aroundMiss(caller, forward, () => (isAnswered() ? res.statusCode === 404 : undefined));
  };
}

/**
 * Sets the handle of the request, unless the request is a list. @throws ServiceError when the handle is
 * invalid
 */
function parseHandle(res: ServerResponse, { refOf }: ForwardReadDeps['resolver']): void {
  const context = contextOf(res);
  const rawHandle = rawHandleOf(context.target.path) ?? '';
  if (!isList(rawHandle, readParameters(context.target.query))) context.handle = refOf(readHandle(rawHandle));
}
