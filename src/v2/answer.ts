// A request of ePIC v2: checks login, path and method, and calls the function that answers.
import type { ErrorRequestHandler, NextFunction, Request, RequestHandler, Response } from 'express';
import { ServiceError } from '../errors.js';
import { RESPONSE_CODE } from '../handle/response-codes.js';
import { contextOf, unjudgedCaller } from '../http/context.js';
import type { Caller } from '../upstream/caller.js';
import type { RecordRead } from '../upstream/record-client.js';
import { listCollection, listPrefixes } from './collection.js';
import type { V2Call, V2Deps, V2SharedDeps } from './deps.js';
import { readLogin } from './login.js';
import { mint } from './mint.js';
import { sendProblem } from './response.js';
import { getHandle, getPublicHandle } from './read.js';
import { rejectAsServer } from './refusal.js';
import { answerOptions, readCollection, readHandleResource, readRoute } from './resource.js';
import type { V2Id } from './routes.js';
import { deleteHandle, putHandle } from './write.js';

export interface V2Interface {
  route: RequestHandler;
  /** For requests that the server rejects before they reach the route. */
  errorReply: ErrorRequestHandler;
}

export function createV2(deps: V2SharedDeps): V2Interface {
  return {
    async route(req, res) {
      try {
        await answer(forCaller(deps, req, res), req, res);
      } catch (error) {
        sendProblem(deps, res, error);
      }
    },
    errorReply(error: unknown, _req: Request, res: Response, next: NextFunction) {
      if (res.headersSent) {
        next(error);
        return;
      }
      sendProblem(deps, res, error);
    },
  };
}

/**
 * Reads wait by the class and the client of the request, and are judged as misses unless the Handle server judges their
 * login.
 */
function forCaller(
  { runStepsOf, limitMiss, checksLogin, ...deps }: V2SharedDeps,
  { headers: { authorization } }: Request,
  res: Response,
): V2Deps {
  const { resolver, records } = deps;
  const callerFor = (handle: string): Caller | undefined =>
    checksLogin(handle, authorization) ? unjudgedCaller(res) : contextOf(res).caller;
  return {
    ...deps,
    run: runStepsOf(res),
    records: {
      ...records,
      get: (handle, options) => limitMiss(callerFor(handle), () => records.get(handle, options), isUnknown),
    },
    resolver: {
      fence: (handle) => resolver.fence(handle).catch(rejectAsServer),
      resolve: (handle, options) => resolver.resolve(handle, { ...options, caller: callerFor(handle) }),
    },
  };
}

const isUnknown = ({ status, responseCode }: RecordRead): boolean | undefined =>
  status < 500 ? responseCode === RESPONSE_CODE.handleNotFound : undefined;

/** In this order: 401, 404, 405, then the checks of the call itself (415, 413, 400, 412, 403). */
async function answer(deps: V2Deps, req: Request, res: Response): Promise<void> {
  const { anonymousRead, identities } = deps.settings;
  if (req.method === 'OPTIONS') {
    answerOptions(req, res);
    return;
  }
  const isRead = req.method === 'GET' || req.method === 'HEAD';
  if (anonymousRead && isRead && req.headers.authorization === undefined) {
    await answerAnonymous(deps, req, res);
    return;
  }
  const login = readLogin(req.headers.authorization, identities);
  await CALLS[readRoute(res)](deps, { req, res, login });
}

const CALLS: Readonly<Record<V2Id, (deps: V2Deps, call: V2Call) => Promise<void>>> = {
  v2Prefixes: listPrefixes,
  v2Search: (deps, call) => listCollection(deps, call, readCollection(call.res)),
  v2Mint: (deps, call) => mint(deps, call, readCollection(call.res)),
  v2Read: (deps, call) => getHandle(deps, call, readHandleResource(call.res)),
  v2Put: (deps, call) => putHandle(deps, call, readHandleResource(call.res)),
  v2Delete: (deps, call) => deleteHandle(deps, call, readHandleResource(call.res)),
};

async function answerAnonymous(deps: V2Deps, req: Request, res: Response): Promise<void> {
  const id = readRoute(res);
  if (id === 'v2Read') await getPublicHandle(deps, req, res, readHandleResource(res));
  else if (id === 'v2Prefixes') await listPrefixes(deps, { req, res });
  else {
    throw new ServiceError('V2_LOGIN_NEEDED', { detail: 'anonymous access is limited to reading handles' });
  }
}
