// Handles ePIC v2 requests: checks login, path and method, then dispatches to the route.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Config } from '../config/schema.js';
import type { Context } from '../context.js';
import type { UnclaimedNames } from './unclaimed-names.js';
import { ServiceError } from '../errors.js';
import { freshnessRules } from '../http/cache-headers.js';
import { contextOf } from '../http/context.js';
import { type RenderError, createReportUnexpected } from '../http/error-reply.js';
import { answerPreflight, isPreflight } from '../http/cors.js';
import { type Listener, type RoutedPath, restOf } from '../http/route-table.js';
import { readHandle } from '../http/target.js';
import { type AnonymousCall, type V2Call, type V2Deps, readLogin } from './call.js';
import { listCollection, listPrefixes } from './collection.js';
import { mint } from './mint.js';
import { getHandle, getPublicHandle } from './read.js';
import { renderProblem, send } from './response.js';
import type { V2Id } from './routes.js';
import { type HandleResource, deleteHandle, putHandle } from './write.js';

export interface V2Interface {
  route: Listener;
  renderError: RenderError;
}

interface V2Parts extends Pick<
  V2Deps,
  'resolver' | 'originOf' | 'carryOut' | 'withBody' | 'runStepsOf' | 'isTrustedProxy'
> {
  unclaimed: UnclaimedNames;
}

export function createV2(config: Pick<Config, 'v2' | 'http'>, context: Context, parts: V2Parts): V2Interface {
  const deps: V2Deps = {
    ...parts,
    settings: {
      ...config.v2,
      identities: new Map(config.v2.identities),
      maxBodyBytes: config.http.maxBodyBytes,
    },
    search: context.hooks.search[0],
    freshness: freshnessRules(config, context).freshness,
    onStale: context.metrics.countStale,
    onUnexpected: createReportUnexpected(context),
    now: context.clock.now,
  };
  return {
    route: (req, res) => answer(deps, { req, res, run: deps.runStepsOf(res) }),
    renderError: renderProblem,
  };
}

/** Checks 401, 404 and 405, in this order; the route's function checks 415, 413, 400, 412 and 403. */
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

/** Returns the matched route. @throws ServiceError UNKNOWN_ENDPOINT if none matches */
function matchOf(res: ServerResponse): RoutedPath {
  const { match } = contextOf(res);
  if (match === undefined) {
    throw new ServiceError('UNKNOWN_ENDPOINT', { detail: 'everything is under /api/v2/handles' });
  }
  return match;
}

/** Returns the raw text after `/api/v2/handles/`. @throws ServiceError UNKNOWN_ENDPOINT */
function restIn(res: ServerResponse): string {
  matchOf(res);
  return restOf(contextOf(res));
}

/** Drops the trailing slash that v2 clients send after a prefix or suffix. */
const withoutSlash = (raw: string): string => raw.replace(/\/$/, '');

/** Parses a prefix path. @throws ServiceError for any other path */
const readPrefix = (res: ServerResponse): string => readHandle(withoutSlash(restIn(res)));

/**
 * Parses a handle path. Every slash after the prefix, encoded or plain, belongs to
 * the suffix; `+` is a plus sign.
 *
 * @throws ServiceError for any other path
 */
function readHandleResource({ resolver }: Pick<V2Deps, 'resolver'>, res: ServerResponse): HandleResource {
  const raw = restIn(res);
  const bare = withoutSlash(raw);
  // In `P//` the second slash is the suffix, not the tolerated trailing slash of the collection `P/`.
  const rawHandle = /^[^/]+\/$/.test(bare) ? raw : bare;
  const handle = resolver.refOf(readHandle(rawHandle));
  contextOf(res).handle = handle;
  return { handle, rawHandle };
}

/** Advice for 405, keyed by the id of the GET route on the same path. */
const ADVICE: Readonly<Record<string, string>> = {
  v2Prefixes: 'this is the list of prefixes; write to /api/v2/handles/<prefix>/<suffix>',
  v2Search: 'this is a prefix; PUT and DELETE need a suffix after it',
  v2Read: 'this is a handle; POST to /api/v2/handles/<prefix> to have a new one named',
} satisfies Partial<Record<V2Id, string>>;

/** Returns the route id. @throws ServiceError UNKNOWN_ENDPOINT, METHOD_NOT_ALLOWED */
function readRoute(res: ServerResponse): V2Id {
  const match = matchOf(res);
  const { route } = contextOf(res);
  if (route !== undefined) return route.id as V2Id;
  throw new ServiceError('METHOD_NOT_ALLOWED', {
    detail: ADVICE[match.routes[0]?.id ?? ''] ?? '',
    allow: match.allow,
  });
}

/** CORS request headers for conditional writes, lists and POST, in addition to the common ones. */
const REQUEST_HEADERS = [
  'If-Match',
  'If-None-Match',
  'If-Modified-Since',
  'If-Unmodified-Since',
  'Depth',
  'Idempotency-Key',
];

function answerOptions(req: IncomingMessage, res: ServerResponse): void {
  const { allow } = matchOf(res);
  if (isPreflight(req)) answerPreflight(req, res, REQUEST_HEADERS);
  else send(res, { status: 204, headers: { Allow: allow.join(', ') } });
}
