// Reads a record: from the cache for anyone, from the Handle server with a login or for private values; forwards lists
// that no plugin knows.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Host } from '../host.js';
import type { Config } from '../config/schema.js';
import { writeJson } from '../handle/json.js';
import { listMembers } from '../handle/outcome.js';
import { firstOf } from '../hooks.js';
import { CACHE_NAME, isOnlyIfCached } from '../http/cache-headers.js';
import { contextOf } from '../http/context.js';
import type { ChecksLogin } from '../http/identity.js';
import { createAnswerRecord } from '../http/record-reply.js';
import { sendReply } from '../http/reply.js';
import type { Listener } from '../http/route-table.js';
import {
  assertEscaped,
  isListRequest,
  pageIn,
  rawHandleOf,
  readHandle,
  readRecordQuery,
} from '../http/target.js';
import { notCached } from '../resolver/loader.js';
import { type Admit, createAroundMiss } from '../upstream/caller.js';
import type { RefOf } from '../upstream/routing.js';
import type { Forward } from './forward.js';

/** Creates the handler of GET requests for a handle. `admit` judges reads that miss in memory. */
export function createReadRecord(config: Config, host: Host, admit: Admit, forwardRead: Listener): Listener {
  const { resolver, findClient } = host;
  const answerRecord = createAnswerRecord(config, host);
  const forwardAdmitted: Listener = async (req, res) => {
    contextOf(res).caller = await admit(req, res);
    await forwardRead(req, res);
  };

  return async function readRecord(req, res) {
    if (req.headers.authorization !== undefined) return forwardAdmitted(req, res);
    const { target, parameters } = contextOf(res);
    const handle = host.refOf(readHandle(rawHandleOf(target.path) ?? ''));
    contextOf(res).handle = handle;
    assertEscaped(target.query);
    const query = readRecordQuery(parameters);
    if (!query.publicOnly) return forwardAdmitted(req, res);
    const resolution = await resolver.read(handle, {
      authoritative: query.authoritative,
      onlyIfCached: isOnlyIfCached(req),
      admit: () => admit(req, res),
      client: () => findClient(req).network,
    });
    return answerRecord(req, res, { handle, query, resolution });
  };
}

/**
 * Forwards reads, even of public values if the request has a login, because a wrong password must get 401.
 * Reads of a handle count as misses unless the server checks the login.
 */
export function createForwardRead(
  config: Config,
  host: Host,
  forward: Forward,
  checksLogin: ChecksLogin,
): Listener {
  const { gzipMinBytes } = config.http;
  const aroundMiss = createAroundMiss(host.hooks.aroundMiss);
  return async function forwardRead(req: IncomingMessage, res: ServerResponse): Promise<void> {
    if (namesNothing(res) && req.headers.authorization !== undefined) return forward(req, res);
    setHandle(res, host.refOf);
    const { handle, caller } = contextOf(res);
    if (handle === undefined && (await sendKnownList(req, res, host, gzipMinBytes))) return;
    if (isOnlyIfCached(req)) throw notCached();
    if (await sendPublic(req, res, host)) return;
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

/** Whether a request is for neither a handle nor a list. A Handle server checks its login, then rejects it. */
const namesNothing = (res: ServerResponse): boolean => {
  const { target, parameters } = contextOf(res);
  return rawHandleOf(target.path) === '' && !parameters.has('prefix');
};

/**
 * Sets the handle of the request, unless the request is a list. @throws ServiceError when the handle is
 * invalid
 */
function setHandle(res: ServerResponse, refOf: RefOf): void {
  const context = contextOf(res);
  const rawHandle = rawHandleOf(context.target.path) ?? '';
  if (!isListRequest(rawHandle, context.parameters)) context.handle = refOf(readHandle(rawHandle));
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
async function sendPublic(req: IncomingMessage, res: ServerResponse, host: Host): Promise<boolean> {
  const { handle, parameters, caller } = contextOf(res);
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
  contextOf(res).result = 'bypass';
  const headers = { 'Cache-Control': 'no-store' };
  await sendReply(req, res, { status, json: body, headers }, host.runStepsOf(res));
  return true;
}
