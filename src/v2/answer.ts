// Handles ePIC v2 requests: checks login, path and method, then dispatches to the route.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Host } from '../host.js';
import type { Config } from '../config/schema.js';
import { ServiceError } from '../errors.js';
import { readHandle } from '../handle/handle.js';
import { recordFreshness } from '../http/cache-headers.js';
import { type Handler, type RequestContext, rawHandleOfV2 } from '../http/context.js';
import { answerPreflight, isPreflight } from '../http/cors.js';
import { type RoutedPath, defineRoutes, restOf } from '../http/route-table.js';
import { UnsentCount } from '../server/unsent.js';
import { type V2Request, type V2, type V2Call, type V2Writes, readV2Login, sendV2 } from './call.js';
import { listCollection, sendPrefixes } from './collection.js';
import { mint } from './mint.js';
import { getHandle, getPublicHandle } from './read.js';
import { type HandleResource, deleteHandle, putHandle } from './write.js';

export const v2Routes = defineRoutes(
  { interface: 'v2', handler: 'v2' },
  {
    'GET /api/v2/handles/{prefix}/{suffix}': 'v2Read',
    'PUT /api/v2/handles/{prefix}/{suffix}': 'v2Put',
    'DELETE /api/v2/handles/{prefix}/{suffix}': 'v2Delete',
    'GET /api/v2/handles/{prefix}': 'v2Search',
    'POST /api/v2/handles/{prefix}': 'v2Mint',
    'GET /api/v2/handles/?': 'v2Prefixes',
  },
);

type V2Id = (typeof v2Routes)[number]['id'];

export function createV2(config: Config, host: Host, writes: V2Writes): Handler {
  const freshness = recordFreshness(config);
  const unsent = new UnsentCount(host.unsent, host, 'http');
  const v2: V2 = { ...writes, config, host, freshness, unsent, identities: new Map(config.v2.identities) };
  /** Checks 401, 404 and 405, in this order; the route's function checks 415, 413, 400, 412 and 403. */
  return async function answerV2(req, res, context) {
    const { method, headers } = req;
    if (method === 'OPTIONS') {
      answerV2Options(req, res, context);
      return;
    }
    const call = { v2, req, res, context, run: context.runSteps };
    const isRead = method === 'GET' || method === 'HEAD';
    if (config.v2.anonymousRead && isRead && headers.authorization === undefined) {
      await answerAnonymous(call);
      return;
    }
    const login = readV2Login(headers.authorization, v2.identities);
    await CALLS[readRoute(context)]({ ...call, login });
  };
}

const CALLS: Readonly<Record<V2Id, (call: V2Call) => Promise<void>>> = {
  v2Prefixes: sendPrefixes,
  v2Search: (call) => listCollection(call, readPrefixPath(call)),
  v2Mint: (call) => mint(call, readPrefixPath(call)),
  v2Read: (call) => getHandle(call, readHandleResource(call).handle),
  v2Put: (call) => putHandle(call, readHandleResource(call)),
  v2Delete: (call) => deleteHandle(call, readHandleResource(call).handle),
};

async function answerAnonymous(call: V2Request): Promise<void> {
  const id = readRoute(call.context);
  if (id === 'v2Read') await getPublicHandle(call, readHandleResource(call).handle);
  else if (id === 'v2Prefixes') await sendPrefixes(call);
  else {
    throw new ServiceError('V2_LOGIN_NEEDED', { detail: 'anonymous access is limited to reading handles' });
  }
}

/** Parses a prefix path. @throws ServiceError for any other path */
const readPrefixPath = ({ context }: V2Call): string => readHandle(rawHandleOfV2(restOf(context)));

/**
 * Parses a handle path. Every slash after the prefix, encoded or plain, belongs to the suffix; `+` is a plus sign.
 *
 * @throws ServiceError for any other path
 */
function readHandleResource({ v2, context }: V2Request): HandleResource {
  const rawHandle = rawHandleOfV2(restOf(context));
  const handle = v2.host.refOf(readHandle(rawHandle));
  context.handle = handle;
  return { handle, rawHandle };
}

/** Advice for 405, keyed by the id of the GET route on the same path. */
const ADVICE: Readonly<Record<string, string>> = {
  v2Prefixes: 'this is the list of prefixes; write to /api/v2/handles/<prefix>/<suffix>',
  v2Search: 'this is a prefix; PUT and DELETE need a suffix after it',
  v2Read: 'this is a handle; POST to /api/v2/handles/<prefix> to have a new one named',
} satisfies Partial<Record<V2Id, string>>;

/** Returns the id of the matched route. @throws ServiceError UNKNOWN_ENDPOINT, METHOD_NOT_ALLOWED */
function readRoute(context: RequestContext): V2Id {
  const { routes, allow } = matchOf(context);
  if (context.route !== undefined) return context.route.id as V2Id;
  throw new ServiceError('METHOD_NOT_ALLOWED', { detail: ADVICE[routes[0]?.id ?? ''] ?? '', allow });
}

/** Returns the matched path. @throws ServiceError UNKNOWN_ENDPOINT if none matches */
function matchOf({ match }: RequestContext): RoutedPath {
  if (match !== undefined) return match;
  throw new ServiceError('UNKNOWN_ENDPOINT', { detail: 'everything is under /api/v2/handles' });
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

function answerV2Options(req: IncomingMessage, res: ServerResponse, context: RequestContext): void {
  const { allow } = matchOf(context);
  if (isPreflight(req)) answerPreflight(req, res, REQUEST_HEADERS);
  else sendV2(res, { status: 204, headers: { Allow: allow.join(', ') } });
}
