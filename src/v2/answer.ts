// Answers requests of ePIC v2: checks login, path and method, and calls the function of the route.
import type { Request, RequestHandler, Response } from 'express';
import type { Config } from '../config/schema.js';
import type { Context } from '../context.js';
import type { Coordination } from '../coordination/coordination.js';
import { ServiceError } from '../errors.js';
import { freshnessRules } from '../http/cache-headers.js';
import { contextOf } from '../http/context.js';
import { type SendError, createReportUnexpected } from '../http/error-reply.js';
import { answerPreflight, isPreflight } from '../http/cors.js';
import type { RouteMatch } from '../http/route-table.js';
import { readHandle } from '../http/target.js';
import { type AnonymousCall, type V2Call, type V2Deps, readLogin } from './call.js';
import type { ReverseLookup } from '../upstream/reverse-lookup.js';
import { listCollection, listPrefixes } from './collection.js';
import { mint } from './mint.js';
import { getHandle, getPublicHandle } from './read.js';
import { createSendProblem, send } from './response.js';
import type { V2Id } from './routes.js';
import { type HandleResource, deleteHandle, putHandle } from './write.js';

export interface V2Interface {
  route: RequestHandler;
  sendError: SendError;
}

interface V2Parts extends Pick<V2Deps, 'resolver' | 'originOf' | 'carryOut' | 'withBody' | 'runStepsOf'> {
  coordination: Pick<Coordination, 'unclaimed'>;
  reverse?: { lookup: ReverseLookup } | undefined;
}

export function createV2(
  config: Pick<Config, 'v2' | 'http'>,
  context: Context,
  { coordination, reverse, ...parts }: V2Parts,
): V2Interface {
  const deps: V2Deps = {
    ...parts,
    settings: {
      ...config.v2,
      identities: new Map(config.v2.identities),
      maxBodyBytes: config.http.maxBodyBytes,
    },
    unclaimed: coordination.unclaimed,
    ...(reverse && { reverseLookup: reverse.lookup }),
    freshness: freshnessRules(config).freshness,
    onStale: context.metrics.countStale,
    onUnexpected: createReportUnexpected(context),
    now: context.clock.now,
  };
  return {
    route: (req, res) => answer(deps, { req, res, run: deps.runStepsOf(res) }),
    sendError: createSendProblem(deps),
  };
}

/** Order of the checks: 401, 404, 405, then those of the call itself (415, 413, 400, 412, 403). */
async function answer(deps: V2Deps, call: AnonymousCall): Promise<void> {
  const { req, res } = call;
  const { anonymousRead, identities } = deps.settings;
  if (req.method === 'OPTIONS') {
    answerOptions(req, res);
    return;
  }
  const isRead = req.method === 'GET' || req.method === 'HEAD';
  if (anonymousRead && isRead && req.headers.authorization === undefined) {
    await answerAnonymous(deps, call);
    return;
  }
  const login = readLogin(req.headers.authorization, identities);
  await CALLS[readRoute(res)](deps, { ...call, login });
}

const CALLS: Readonly<Record<V2Id, (deps: V2Deps, call: V2Call) => Promise<void>>> = {
  v2Prefixes: listPrefixes,
  v2Search: (deps, call) => listCollection(deps, call, readPrefix(call.res)),
  v2Mint: (deps, call) => mint(deps, call, readPrefix(call.res)),
  v2Read: (deps, call) => getHandle(deps, call, readHandleResource(deps, call.res).handle),
  v2Put: (deps, call) => putHandle(deps, call, readHandleResource(deps, call.res)),
  v2Delete: (deps, call) => deleteHandle(deps, call, readHandleResource(deps, call.res).handle),
};

async function answerAnonymous(deps: V2Deps, call: AnonymousCall): Promise<void> {
  const id = readRoute(call.res);
  if (id === 'v2Read') await getPublicHandle(deps, call, readHandleResource(deps, call.res).handle);
  else if (id === 'v2Prefixes') await listPrefixes(deps, call);
  else {
    throw new ServiceError('V2_LOGIN_NEEDED', { detail: 'anonymous access is limited to reading handles' });
  }
}

/** @throws ServiceError UNKNOWN_ENDPOINT when no route has the path */
function matchOf(res: Response): RouteMatch {
  const { match } = contextOf(res);
  if (match === undefined) {
    throw new ServiceError('UNKNOWN_ENDPOINT', { detail: 'everything is under /api/v2/handles' });
  }
  return match;
}

/** Clients of v2 send a trailing slash, which is ignored after a prefix or a suffix. */
const withoutSlash = (raw: string): string => raw.replace(/\/$/, '');

/** @throws ServiceError when the path is not a prefix */
const readPrefix = (res: Response): string => readHandle(withoutSlash(matchOf(res).rest));

/**
 * Any slash after that of the prefix, `%2F` or plain, is part of the suffix; `+` is a plus.
 *
 * @throws ServiceError when the path is not a handle
 */
function readHandleResource({ resolver }: Pick<V2Deps, 'resolver'>, res: Response): HandleResource {
  const raw = matchOf(res).rest;
  const bare = withoutSlash(raw);
  // `P//` cannot mean the collection `P/`: the second slash is the suffix.
  const rawHandle = /^[^/]+\/$/.test(bare) ? raw : bare;
  const handle = resolver.refOf(readHandle(rawHandle));
  contextOf(res).handle = handle;
  return { handle, rawHandle };
}

/** Advice for a refused method, by the route of the GET on the same path. */
const ADVICE: Readonly<Record<string, string>> = {
  v2Prefixes: 'this is the list of prefixes; write to /api/v2/handles/<prefix>/<suffix>',
  v2Search: 'this is a prefix; PUT and DELETE need a suffix after it',
  v2Read: 'this is a handle; POST to /api/v2/handles/<prefix> to have a new one named',
} satisfies Partial<Record<V2Id, string>>;

/** @throws ServiceError UNKNOWN_ENDPOINT, METHOD_REFUSED */
function readRoute(res: Response): V2Id {
  const match = matchOf(res);
  const { route } = contextOf(res);
  if (route !== undefined) return route.id as V2Id;
  throw new ServiceError('METHOD_REFUSED', {
    detail: ADVICE[match.routes[0]?.id ?? ''] ?? '',
    allow: match.allow,
  });
}

/** Request headers of conditional writes, lists and POST, in addition to those that every interface allows. */
const REQUEST_HEADERS = [
  'If-Match',
  'If-None-Match',
  'If-Modified-Since',
  'If-Unmodified-Since',
  'Depth',
  'Idempotency-Key',
];

function answerOptions(req: Request, res: Response): void {
  const { allow } = matchOf(res);
  if (isPreflight(req)) answerPreflight(req, res, REQUEST_HEADERS);
  else send(res, { status: 204, headers: { Allow: allow.join(', ') } });
}
