// Requests whose answers are never kept and never shared: with credentials, lists, other endpoints.
import type { Request, RequestHandler, Response } from 'express';
import { handleToPath } from '../handle/handle.js';
import { type RequestContext, contextOf } from './context.js';
import type { Forward } from './forwarder.js';
import { handBack } from './hand-back.js';
import type { WithBody } from './request-body.js';

export interface PassThroughDeps {
  withBody: WithBody;
  forward: Forward;
}

export function createPassThrough({ withBody, forward }: PassThroughDeps): RequestHandler {
  return async function passThrough(req: Request, res: Response): Promise<void> {
    const context = contextOf(res);
    context.result = 'bypass';
    const target = upstreamTarget(context);
    await handBack(await withBody(req, (body) => forward(req, res, { target, body })), res);
  };
}

/** The target upstream: a handle is written anew, so that no URL parser on the way can misread it. */
export function upstreamTarget({ target, handle }: RequestContext): string {
  const path = handle === undefined ? target.path : `/api/handles/${handleToPath(handle)}`;
  return target.query === '' ? path : `${path}?${target.query}`;
}
