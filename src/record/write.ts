// PUT and DELETE of a handle: read, fenced, forwarded as they are, invalidated here before they are acknowledged.
import type { IncomingMessage } from 'node:http';
import type { Request, RequestHandler, Response } from 'express';
import type { Fence } from '../cache/store.js';
import { ServiceError } from '../errors.js';
import type { Selection } from '../handle/value.js';
import { judgeWrite } from '../handle/write-outcome.js';
import { type ConditionalDeps, isConditional, whileConditionHolds } from './conditional-write.js';
import { contextOf } from '../http/context.js';
import type { Forward } from './forward.js';
import { handBack } from './relay-response.js';
import { mintedHandle, readWhole, responseCodeOf } from './minted-handle.js';
import { upstreamTarget } from './pass-through.js';
import { isCreateOnly } from '../http/preconditions.js';
import { readParameters } from '../http/query.js';
import type { WithBody } from '../http/request-body.js';
import { readHandle } from './resolve.js';
import { rawHandleOf } from '../http/target.js';

export interface WriteDeps {
  withBody: WithBody;
  fence: (handle: string) => Promise<Fence>;
  forget: (handle: string) => Promise<void>;
  forward: Forward;
  conditional: ConditionalDeps;
}

export function createWriteRoute(deps: WriteDeps): RequestHandler {
  return async function writeRoute(req: Request, res: Response): Promise<void> {
    const context = contextOf(res);
    context.result = 'write';
    context.handle = readHandle(rawHandleOf(context.target.path) ?? '');
    const isCreate = isCreateOnly(req);
    context.target.query = queryToSend(req, context.target.query);
    const { handle } = context;
    const target = upstreamTarget(context);
    const send = (body: Buffer) => async (): Promise<Answered> =>
      forwardFenced(() => deps.forward(req, res, { target, body }), await deps.fence(handle));
    const { answer, body } = await deps.withBody(req, (body) => {
      if (!isConditional(req) || isCreate) return send(body)();
      const selection = selectionOf(context.target.query);
      return whileConditionHolds(deps.conditional, req, { handle, selection }, send(body));
    });
    if (isCreate && answer.statusCode === 409) {
      answer.resume();
      throw new ServiceError('CONDITION_FAILED', { detail: 'it exists already' });
    }
    if (isMinting(req, context.target.query)) await handBackMinted(answer, res, deps);
    else await handBack(answer, res, { ...(body && { body }) });
  };
}

function queryToSend(req: Request, query: string): string {
  if (req.method !== 'PUT') return query;
  const explicit = withExplicitFlags(query);
  if (!isCreateOnly(req)) return explicit;
  // Also where the name is percent-encoded.
  const others = explicit.split('&').filter((part) => part !== '' && !readParameters(part).has('overwrite'));
  return [...others, 'overwrite=false'].join('&');
}

/** `?index=various` says in the body which values are meant: the condition is about the whole record then. */
function selectionOf(query: string): Selection {
  const indexes = readParameters(query).getAll('index');
  return { indexes: indexes.every((index) => /^\d+$/.test(index)) ? indexes.map(Number) : [], types: [] };
}

/** An answer to a write, and its body where that was read to judge it. */
interface Answered {
  answer: IncomingMessage;
  body?: Buffer;
}

export async function forwardFenced(
  forward: () => Promise<IncomingMessage>,
  fence: Fence,
): Promise<Answered> {
  try {
    const answer = await forward();
    const status = answer.statusCode ?? 0;
    // Of any other answer the status says all there is to know.
    const body = status === 404 ? await readWhole(answer) : undefined;
    await fence[judgeWrite({ status, responseCode: body && responseCodeOf(body) })]();
    return { answer, ...(body && { body }) };
  } catch (failure) {
    await fence[judgeWrite({ failure })]();
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
function isMinting({ method }: Request, query: string): boolean {
  const parameters = readParameters(query);
  const flag = parameters.get('mintNewSuffix')?.toLowerCase();
  return method === 'PUT' && flag === 'true' && !parameters.has('index');
}

/** Somebody may have asked for the very name that was minted: it is not unknown any more. */
async function handBackMinted(answer: IncomingMessage, res: Response, { forget }: WriteDeps): Promise<void> {
  const body = await readWhole(answer);
  const minted = mintedHandle(body);
  if (minted !== undefined) await forget(minted);
  await handBack(answer, res, { body });
}
