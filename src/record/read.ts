// Reads a record: from the cache for anyone, from the Handle server with a login or for private values; forwards lists
// that no plugin knows.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Host } from '../host.js';
import type { Config } from '../config/schema.js';
import { writeJson } from '../handle/json.js';
import { listMembers } from '../handle/outcome.js';
import { firstOf } from '../hooks.js';
import { CACHE_NAME, isOnlyIfCached } from '../http/cache-headers.js';
import { type Admit, type Handler, type RequestContext, contextOf } from '../http/context.js';
import type { ChecksLogin } from '../http/identity.js';
import { createAnswerRecord } from '../http/record-reply.js';
import { sendReply } from '../http/reply.js';
import {
  assertEscaped,
  isListRequest,
  pageIn,
  rawHandleOf,
  readHandle,
  readRecordQuery,
} from '../http/target.js';
import { notCached } from '../resolver/loader.js';
import { createAroundMiss } from '../upstream/caller.js';
import type { Forward } from './forward.js';

/** Creates the handler of GET requests for a handle. `admit` judges reads that miss in memory. */
export function createReadRecord(config: Config, host: Host, admit: Admit, forwardRead: Handler): Handler {
  const { resolver } = host;
  const answerRecord = createAnswerRecord(config, host);
  const forwardAdmitted: Handler = async (req, res, context) => {
    context.caller = await admit(req, res, context);
    await forwardRead(req, res, context);
  };

  return async function readRecord(req, res, context) {
    if (req.headers.authorization !== undefined) return forwardAdmitted(req, res, context);
    const { target, parameters, client } = context;
    const handle = host.refOf(readHandle(rawHandleOf(target.path) ?? ''));
    context.handle = handle;
    if (target.query !== '') assertEscaped(target.query);
    const query = target.query === '' ? WHOLE_RECORD : readRecordQuery(parameters);
    if (!query.publicOnly) return forwardAdmitted(req, res, context);
    const resolution = await resolver.read(handle, {
      authoritative: query.authoritative,
      onlyIfCached: isOnlyIfCached(req),
      admit: () => admit(req, res, context),
      client: client.network,
    });
    return answerRecord(req, res, { handle, query, resolution });
  };
}

/** The query of a request without parameters, which most are. */
const WHOLE_RECORD = readRecordQuery(new URLSearchParams());

/**
 * Forwards reads, even of public values if the request has a login, because a wrong password must get 401.
 * Reads of a handle count as misses unless the server checks the login.
 */
export function createForwardRead(
  config: Config,
  host: Host,
  forward: Forward,
  checksLogin: ChecksLogin,
): Handler {
  const { gzipMinBytes } = config.http;
  const aroundMiss = createAroundMiss(host.hooks.aroundMiss);
  return async function forwardRead(req, res, context): Promise<void> {
    const { parameters, caller } = context;
    const rawHandle = rawHandleOf(context.target.path) ?? '';
    const isList = isListRequest(rawHandle, parameters);
    // A request for neither a handle nor a list: a Handle server checks its login, then rejects it.
    if (rawHandle === '' && !isList && req.headers.authorization !== undefined) return forward(req, res);
    const handle = isList ? undefined : host.refOf(readHandle(rawHandle));
    context.handle = handle;
    if (await sendUnforwarded(req, res, host, { context, gzipMinBytes })) return;
    if (handle === undefined || checksLogin(handle, req.headers.authorization)) {
      await forward(req, res);
      return;
    }
    const forwardWhole = async (): Promise<void> => {
      const closed = new Promise<void>((resolve) => res.once('close', resolve));
      await forward(req, res);
      await closed;
    };
    // A client that disconnects early learns nothing, so the result does not count.
    const isAnswered = (): boolean => res.writableFinished && res.statusCode < 500;
    await aroundMiss(caller, forwardWhole, () => (isAnswered() ? res.statusCode === 404 : undefined));
  };
}

/** Sends a response without the Handle server's; returns false if the request must be forwarded. */
async function sendUnforwarded(
  req: IncomingMessage,
  res: ServerResponse,
  host: Host,
  { context, gzipMinBytes }: { context: RequestContext; gzipMinBytes: number },
): Promise<boolean> {
  if (context.handle === undefined && (await sendKnownList(req, res, host, gzipMinBytes))) return true;
  if (isOnlyIfCached(req)) throw notCached();
  return sendPublic(req, res, host, context);
}

/** Sends a list that a plugin knows; returns false, and sends nothing, if it must come from the server. */
async function sendKnownList(
  req: IncomingMessage,
  res: ServerResponse,
  { hooks, clock, runStepsOf }: Host,
  gzipMinBytes: number,
): Promise<boolean> {
  const context = contextOf(res);
  const { parameters } = context;
  const prefix = parameters.get('prefix') ?? '';
  const hasLogin = req.headers.authorization !== undefined;
  const request = { method: req.method ?? 'GET', hasLogin, parameters };
  const list = firstOf(hooks.list, (find) => find(prefix, request));
  if (list === undefined) return false;
  context.result = 'hit';
  const headers = {
    Age: String(Math.max(0, Math.floor((clock.now() - list.listedAt) / 1000))),
    'Cache-Control': 'no-store',
    'Cache-Status': `${CACHE_NAME}; hit; detail=${list.detail}`,
  };
  const json = writeJson(listMembers(prefix, list.handles, list.page));
  await sendReply(req, res, { status: 200, json, headers, gzipMinBytes }, runStepsOf(res));
  return true;
}

/** Serves a record or a list; returns false, and sends no response, if the request must be forwarded. */
async function sendPublic(
  req: IncomingMessage,
  res: ServerResponse,
  host: Host,
  context: RequestContext,
): Promise<boolean> {
  const { handle, parameters, caller } = context;
  const prefix = parameters.get('prefix') ?? '';
  const named = handle ?? host.refOf(`${prefix}/`);
  const origin = host.originOf(named, { authorization: undefined, caller });
  const source = origin.server?.source;
  if (source === undefined || source.forwards) return false;
  if (req.method !== 'GET' && req.method !== 'HEAD') throw source.refusal();
  const { authoritative, ...selection } = readRecordQuery(parameters);
  const { status, body } = await (handle === undefined
    ? origin.list(prefix, pageIn(parameters))
    : origin.get({ authoritative, selection }));
  context.result = 'bypass';
  const headers = { 'Cache-Control': 'no-store' };
  await sendReply(req, res, { status, json: body, headers }, host.runStepsOf(res));
  return true;
}
