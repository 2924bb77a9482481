// The calls of ePIC v2: who may go where, and which part answers.
import type { ErrorRequestHandler, NextFunction, Request, RequestHandler, Response } from 'express';
import { ServiceError } from '../errors.js';
import { contextOf } from '../http/context.js';
import { createCollection } from './collection.js';
import type { Call, V2Deps } from './deps.js';
import { readLogin } from './login.js';
import { createMint } from './mint.js';
import { answerV2Options } from './options.js';
import { createProblemReply } from './problem.js';
import { createPut } from './put.js';
import { createRead } from './read.js';
import { createRemove } from './remove.js';
import { type V2Target, readV2Target } from './target.js';

const ALLOWED: Readonly<Record<V2Target['kind'], readonly string[]>> = {
  prefixes: ['GET', 'HEAD', 'OPTIONS'],
  collection: ['GET', 'HEAD', 'POST', 'OPTIONS'],
  handle: ['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS'],
};

const WHY_NOT: Readonly<Record<V2Target['kind'], string>> = {
  prefixes: 'this is the list of prefixes; write to /api/v2/handles/<prefix>/<suffix>',
  collection: 'this is a prefix; PUT and DELETE need a suffix after it',
  handle: 'this is a handle; POST to /api/v2/handles/<prefix> to have a new one named',
};

type AnswerAll = (call: Call, target: V2Target) => Promise<void>;
type AnswerAnybody = (req: Request, res: Response, target: V2Target) => Promise<void>;

export interface V2Routes {
  route: RequestHandler;
  /** For requests that were refused before they came to the route. */
  errorReply: ErrorRequestHandler;
}

/** Checks in this order: 401, 404, 405, then what the call itself demands (415, 413, 400, 412, 403). */
export function createV2Routes(deps: V2Deps): V2Routes {
  const { anonymousRead, identities, realm } = deps.settings;
  const problemReply = createProblemReply({ realm, onUnexpected: deps.onUnexpected });
  const { asCaller, asAnybody } = createAnswers(deps);

  async function answer(req: Request, res: Response): Promise<void> {
    if (req.method === 'OPTIONS') {
      answerV2Options(req, res, allowOf(demandTarget(res)));
      return;
    }
    const isRead = req.method === 'GET' || req.method === 'HEAD';
    if (anonymousRead && isRead && req.headers.authorization === undefined) {
      await asAnybody(req, res, demandTarget(res));
      return;
    }
    const login = readLogin(req.headers.authorization, identities);
    const target = demandTarget(res);
    demandMethod(req, res, target);
    await asCaller({ req, res, login }, target);
  }

  return {
    async route(req, res) {
      try {
        await answer(req, res);
      } catch (error) {
        problemReply(error, res);
      }
    },
    errorReply(error: unknown, _req: Request, res: Response, next: NextFunction) {
      if (res.headersSent) {
        next(error);
        return;
      }
      nameMethods(error, res);
      problemReply(error, res);
    },
  };
}

function createAnswers(deps: V2Deps): { asCaller: AnswerAll; asAnybody: AnswerAnybody } {
  const read = createRead(deps);
  const collection = createCollection(deps);
  const [put, mint, remove] = [createPut(deps), createMint(deps), createRemove(deps)];
  return {
    async asCaller(call, target) {
      const { method } = call.req;
      if (target.kind === 'prefixes') await collection.prefixes(call);
      else if (target.kind === 'collection') {
        await (method === 'POST' ? mint(call, target) : collection.handles(call, target));
      } else if (method === 'PUT') await put(call, target);
      else if (method === 'DELETE') await remove(call, target);
      else await read.asCaller(call, target);
    },
    async asAnybody(req, res, target) {
      if (target.kind === 'handle') await read.asAnybody(req, res, target);
      else if (target.kind === 'prefixes') await collection.prefixes({ req, res });
      else throw new ServiceError('V2_LOGIN_NEEDED', { detail: 'only handles are read without one' });
    },
  };
}

function demandTarget(res: Response): V2Target {
  const context = contextOf(res);
  const target = readV2Target(context.target.path);
  if (target === undefined) {
    throw new ServiceError('UNKNOWN_ENDPOINT', { detail: 'everything is under /api/v2/handles' });
  }
  if (target.kind === 'handle') context.handle = target.handle;
  return target;
}

const allowOf = ({ kind }: V2Target): string => ALLOWED[kind].join(', ');

function demandMethod({ method }: Request, res: Response, target: V2Target): void {
  if (ALLOWED[target.kind].includes(method)) return;
  res.setHeader('Allow', allowOf(target));
  throw new ServiceError('METHOD_REFUSED', { detail: WHY_NOT[target.kind] });
}

/** A method that is refused everywhere is refused before anybody asks what stands at the path. */
function nameMethods(error: unknown, res: Response): void {
  if (!(error instanceof ServiceError) || error.code !== 'METHOD_REFUSED') return;
  try {
    res.setHeader('Allow', allowOf(demandTarget(res)));
  } catch {
    // Nothing stands there, so nothing is allowed (RFC 9110 §10.2.1).
    res.setHeader('Allow', '');
  }
}
