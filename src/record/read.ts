// Reads a record: from the cache for anyone, from the Handle server with a login or for private values; forwards lists
// that no plugin knows.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { PreparedCache } from '../cache/prepared-cache.js';
import type { Config } from '../config/schema.js';
import type { Context } from '../context.js';
import { writeJson } from '../handle/json.js';
import { listMembers } from '../handle/outcome.js';
import { type Hooks, firstOf } from '../hooks.js';
import { freshnessRules, CACHE_NAME } from '../http/cache-headers.js';
import { contextOf } from '../http/context.js';
import type { ChecksLogin } from '../http/identity.js';
import { answerRecord } from '../http/record-reply.js';
import { sendReply } from '../http/reply.js';
import type { RunStepsOf } from '../http/request-work.js';
import type { Listener } from '../http/route-table.js';
import { readRecordQuery, rawHandleOf, readHandle, pageIn, isList } from '../http/target.js';
import type { Resolver } from '../resolver/resolver.js';
import type { FindClient } from '../server/client-address.js';
import { type Admit, createAroundMiss } from '../upstream/caller.js';
import type { OriginOf } from '../write/origin-record.js';
import type { Forward } from './forward.js';

interface ReadParts {
  resolver: Pick<Resolver, 'read' | 'refOf'>;
  /** Judges reads that miss in memory. */
  admit: Admit;
  findClient: FindClient;
  prepared: PreparedCache;
  runStepsOf: RunStepsOf;
  /** Forwards a read, also of public values, if the request has a login, because a wrong password must get 401. */
  forwardRead: Listener;
}

/** Creates the handler of GET requests for a handle. */
export function createReadRecord(config: Pick<Config, 'http'>, context: Context, parts: ReadParts): Listener {
  const { resolver, admit, findClient, forwardRead } = parts;
  const { freshness } = freshnessRules(config, context);
  const deps = { ...parts, context, freshness, gzipMinBytes: config.http.gzipMinBytes };
  const forward: Listener = async (req, res) => {
    contextOf(res).caller = await admit(req, res);
    await forwardRead(req, res);
  };

  return async function readRecord(req, res) {
    if (req.headers.authorization !== undefined) return forward(req, res);
    const { target, parameters } = contextOf(res);
    const handle = resolver.refOf(readHandle(rawHandleOf(target.path) ?? ''));
    contextOf(res).handle = handle;
    const query = readRecordQuery(parameters);
    if (!query.publicOnly) return forward(req, res);
    const { authoritative } = query;
    const resolution = await resolver.read(handle, {
      authoritative,
      admit: () => admit(req, res),
      client: () => findClient(req).network,
    });
    return answerRecord(req, res, { handle, query, resolution, deps });
  };
}

interface ForwardReadDeps {
  originOf: OriginOf;
  resolver: Pick<Resolver, 'refOf'>;
  runStepsOf: RunStepsOf;
  hooks: Pick<Hooks, 'list' | 'aroundMiss'>;
  now: () => number;
  /** Minimum body length for compression (bytes). */
  gzipMinBytes: number;
  forward: Forward;
  checksLogin: ChecksLogin;
}

/**
 * Forwards reads, even of public values if the request has a login, because a wrong password must get 401.
 * Reads of a handle count as misses unless the server checks the login.
 */
export function createForwardRead(deps: ForwardReadDeps): Listener {
  const { forward, checksLogin } = deps;
  const aroundMiss = createAroundMiss(deps.hooks.aroundMiss);
  return async function forwardRead(req: IncomingMessage, res: ServerResponse): Promise<void> {
    parseHandle(res, deps.resolver);
    const { handle, caller } = contextOf(res);
    if (handle === undefined && (await sendKnownList(req, res, deps))) return;
    if (await readPublic(req, res, deps)) return;
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

/**
 * Sets the handle of the request, unless the request is a list. @throws ServiceError when the handle is
 * invalid
 */
function parseHandle(res: ServerResponse, { refOf }: ForwardReadDeps['resolver']): void {
  const context = contextOf(res);
  const rawHandle = rawHandleOf(context.target.path) ?? '';
  if (!isList(rawHandle, context.parameters)) context.handle = refOf(readHandle(rawHandle));
}

/** Sends a list that a plugin knows; returns false, and sends nothing, if it must come from the server. */
async function sendKnownList(
  req: IncomingMessage,
  res: ServerResponse,
  { hooks, now, gzipMinBytes, runStepsOf }: ForwardReadDeps,
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
    Age: String(Math.max(0, Math.floor((now() - list.listedAt) / 1000))),
    'Cache-Control': 'no-store',
    'Cache-Status': `${CACHE_NAME}; hit; detail=${list.detail}`,
  };
  const json = writeJson(listMembers(prefix, list.handles, list.page));
  await sendReply(req, res, { status: 200, json, headers, gzipMinBytes, runSteps: runStepsOf(res) });
  return true;
}

/** Serves a record or a list; returns false, and sends no response, if the request must be forwarded. */
async function readPublic(
  req: IncomingMessage,
  res: ServerResponse,
  deps: ForwardReadDeps,
): Promise<boolean> {
  const { handle, parameters, caller } = contextOf(res);
  const prefix = parameters.get('prefix') ?? '';
  const named = handle ?? deps.resolver.refOf(`${prefix}/`);
  const origin = deps.originOf(named, { authorization: undefined, caller });
  const source = origin.server?.source;
  if (source === undefined || source.forwards) return false;
  if (req.method !== 'GET' && req.method !== 'HEAD') throw source.refusal();
  const { authoritative, ...selection } = readRecordQuery(parameters);
  const { status, body } = await (handle === undefined
    ? origin.list(prefix, pageIn(parameters))
    : origin.get({ authoritative, selection }));
  contextOf(res).result = 'bypass';
  const headers = { 'Cache-Control': 'no-store' };
  const runSteps = deps.runStepsOf(res);
  await sendReply(req, res, { status, json: body, headers, gzipMinBytes: Infinity, runSteps });
  return true;
}
