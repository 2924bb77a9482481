// The routes of ePIC v2: checks login, path and method, and calls the function that answers.
import type { ErrorRequestHandler, NextFunction, Request, RequestHandler, Response } from 'express';
import { ServiceError } from '../errors.js';
import { contextOf, unjudgedCaller } from '../http/context.js';
import { listCollection, listPrefixes } from './collection.js';
import type { V2Call, V2Deps, V2SharedDeps } from './deps.js';
import { readLogin } from './login.js';
import { mint } from './mint.js';
import { sendProblem } from './response.js';
import { getHandle, getPublicHandle } from './read.js';
import { rejectAsServer } from './refusal.js';
import { type Resource, answerOptions, assertMethod, readResource } from './resource.js';
import { deleteHandle, putHandle } from './write.js';

export interface V2Routes {
  route: RequestHandler;
  /** For requests that the server rejects before they reach the route. */
  errorReply: ErrorRequestHandler;
}

export function createV2Routes(deps: V2SharedDeps): V2Routes {
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

/** Reads of public records wait by the class and the client of the request. A login is not judged by its misses. */
function forCaller({ runStepsOf, ...deps }: V2SharedDeps, { headers }: Request, res: Response): V2Deps {
  const { resolver } = deps;
  const caller = headers.authorization === undefined ? contextOf(res).caller : unjudgedCaller(res);
  return {
    ...deps,
    run: runStepsOf(res),
    resolver: {
      fence: (handle) => resolver.fence(handle).catch(rejectAsServer),
      resolve: (handle, options) => resolver.resolve(handle, { ...options, caller }),
    },
  };
}

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
  const resource = readResource(res);
  assertMethod(req, resource);
  await answerCaller(deps, { req, res, login }, resource);
}

function answerCaller(deps: V2Deps, call: V2Call, resource: Resource): Promise<void> {
  const { method } = call.req;
  if (resource.kind === 'prefixes') return listPrefixes(deps, call);
  if (resource.kind === 'collection') {
    return method === 'POST' ? mint(deps, call, resource) : listCollection(deps, call, resource);
  }
  if (method === 'PUT') return putHandle(deps, call, resource);
  if (method === 'DELETE') return deleteHandle(deps, call, resource);
  return getHandle(deps, call, resource);
}

async function answerAnonymous(deps: V2Deps, req: Request, res: Response): Promise<void> {
  const resource = readResource(res);
  if (resource.kind === 'handle') await getPublicHandle(deps, req, res, resource);
  else if (resource.kind === 'prefixes') await listPrefixes(deps, { req, res });
  else {
    throw new ServiceError('V2_LOGIN_NEEDED', { detail: 'anonymous access is limited to reading handles' });
  }
}
