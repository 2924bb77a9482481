// PUT and DELETE of a handle: read, fenced, forwarded as they are, invalidated here before they are acknowledged.
import type { IncomingMessage } from 'node:http';
import type { Request, RequestHandler, Response } from 'express';
import type { Fence } from '../cache/store.js';
import { judgeWrite } from '../handle/write-outcome.js';
import { judgeFailedWrite } from '../upstream/failure.js';
import { contextOf } from './context.js';
import type { Forward } from './forwarder.js';
import { handBack } from './hand-back.js';
import { mintedHandle, readWhole, responseCodeOf } from './minted.js';
import { upstreamTarget } from './pass-through.js';
import type { WithBody } from './request-body.js';
import { readHandle } from './resolve.js';
import { rawHandleOf } from './target.js';

export interface WriteDeps {
  withBody: WithBody;
  fence: (handle: string) => Promise<Fence>;
  forget: (handle: string) => Promise<void>;
  forward: Forward;
}

export function createWriteRoute(deps: WriteDeps): RequestHandler {
  return async function writeRoute(req: Request, res: Response): Promise<void> {
    const context = contextOf(res);
    context.result = 'write';
    context.handle = readHandle(rawHandleOf(context.target.path) ?? '');
    context.target.query =
      req.method === 'PUT' ? withExplicitFlags(context.target.query) : context.target.query;
    const { handle } = context;
    const target = upstreamTarget(context);
    const { answer, body } = await deps.withBody(req, async (body) =>
      forwardFenced(() => deps.forward(req, res, { target, body }), await deps.fence(handle)),
    );
    if (isMinting(req, context.target.query)) await handBackMinted(answer, res, deps);
    else await handBack(answer, res, body);
  };
}

/** An answer to a write, and its body where that was read to judge it. */
interface Answered {
  answer: IncomingMessage;
  body?: Buffer;
}

async function forwardFenced(forward: () => Promise<IncomingMessage>, fence: Fence): Promise<Answered> {
  try {
    const answer = await forward();
    const status = answer.statusCode ?? 0;
    // Of the others the status says all there is to know, and they need not be read.
    const body = status === 404 ? await readWhole(answer) : undefined;
    await fence[judgeWrite({ status, responseCode: body && responseCodeOf(body) })]();
    return { answer, ...(body && { body }) };
  } catch (failure) {
    await fence[judgeFailedWrite(failure)]();
    throw failure;
  }
}

/**
 * A flag without a value means true in the documentation, but false to the server, which compares
 * with "true" (recording "overwrite (empty) on existing"): what is meant is sent in so many words.
 */
export function withExplicitFlags(query: string): string {
  return query
    .split('&')
    .map((part) => part.replace(/^(overwrite|mintNewSuffix)=?$/, '$1=true'))
    .join('&');
}

/** The server ignores the flag when there are indexes (api-facts: PUT parameters). */
const isMinting = ({ method }: Request, query: string): boolean =>
  method === 'PUT' && /(^|&)mintNewSuffix=true(&|$)/i.test(query) && !/(^|&)index=/.test(query);

/** Somebody may have asked for the very name that was minted: it is not unknown any more. */
async function handBackMinted(answer: IncomingMessage, res: Response, { forget }: WriteDeps): Promise<void> {
  const body = await readWhole(answer);
  const minted = mintedHandle(body);
  if (minted !== undefined) await forget(minted);
  await handBack(answer, res, body);
}
