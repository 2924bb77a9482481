// PUT and DELETE of a handle: body, precondition, fence, forward, settle by outcome, reply. Read it from the top.
import type { IncomingMessage } from 'node:http';
import type { Request, RequestHandler, Response } from 'express';
import type { Fence } from '../cache/store.js';
import { ServiceError } from '../errors.js';
import { RESPONSE_CODE } from '../handle/response-codes.js';
import { type WriteResult, judgeWrite, settle, withoutRetryAfter } from '../upstream/write-outcome.js';
import { contextOf } from '../http/context.js';
import { isCreateOnly } from '../http/preconditions.js';
import { readParameters } from '../http/query.js';
import type { WithBody } from '../http/request-body.js';
import type { RunStepsOf } from '../http/request-work.js';
import { rawHandleOf, readHandle } from '../http/target.js';
import { type ConditionalDeps, runIfConditionHolds } from './conditional-write.js';
import type { Learn } from './learning.js';
import { type Forward, upstreamTarget } from './forward.js';
import { MAX_ANSWER_BYTES, parseAnswer, peekResponseBody, relayResponse } from './relay-response.js';

interface WriteRouteDeps {
  withBody: WithBody;
  fence: (handle: string) => Promise<Fence>;
  invalidate: (handle: string) => Promise<void>;
  learn: Learn;
  forward: Forward;
  conditional: ConditionalDeps;
  runStepsOf: RunStepsOf;
  /** What to call when a write of the handle is refused because its login was ignored; undefined over https. */
  onIgnoredLogin: (handle: string) => (() => void) | undefined;
}

export function createWriteRoute(deps: WriteRouteDeps): RequestHandler {
  return async function writeRoute(req: Request, res: Response): Promise<void> {
    const context = contextOf(res);
    context.result = 'write';
    const handle = readHandle(rawHandleOf(context.target.path) ?? '');
    context.handle = handle;
    const query = upstreamQuery(req, context.target.query);
    context.target.query = query;
    const target = upstreamTarget(context);

    // The body first: while it trickles in no handle is locked or fenced.
    const runSteps = deps.runStepsOf(res);
    const relayed = await deps.withBody(req, (body) =>
      runIfConditionHolds(
        deps.conditional,
        { req, handle, query, runSteps },
        {
          async write(beforeSend) {
            const fence = await deps.fence(handle);
            return forwardFenced(() => deps.forward(req, res, { target, body, beforeSend }), fence);
          },
          isRefused: ({ response: { statusCode = 0 } }) => statusCode === 401 || statusCode === 403,
        },
      ),
    );
    await reply(
      { req, res, handle, query },
      await reportIgnoredLogin(req, relayed, deps.onIgnoredLogin(handle)),
      deps,
    );
  };
}

/** A response of the upstream, and its body where that was read. */
interface RelayedResponse {
  response: IncomingMessage;
  body?: Buffer;
}

/** Forwards a write and settles it. While the fence is up no load that began before is stored. */
export async function forwardFenced(
  forward: () => Promise<IncomingMessage>,
  fence: Fence,
): Promise<RelayedResponse> {
  let relayed: RelayedResponse;
  let result: WriteResult;
  try {
    const response = await forward();
    const status = response.statusCode ?? 0;
    // The status of any other response is enough to judge it.
    const body = status === 404 ? await peekResponseBody(response, MAX_ANSWER_BYTES) : undefined;
    result = { status, responseCode: body && (await parseAnswer(response, body)).responseCode };
    relayed = { response, ...(body && { body }) };
  } catch (failure) {
    const outcome = judgeWrite({ failure });
    await settle(fence, outcome);
    throw outcome === 'unchanged' ? failure : withoutRetryAfter(failure);
  }
  // Outside of the try: a change that is not confirmed is settled all the same.
  await settle(fence, judgeWrite(result));
  return relayed;
}

/** Over plain http a login is ignored: 403 with response code 402 (recording "create: Basic over plain http"). */
async function reportIgnoredLogin(
  { headers }: Request,
  relayed: RelayedResponse,
  onIgnoredLogin: (() => void) | undefined,
): Promise<RelayedResponse> {
  const { response } = relayed;
  if (onIgnoredLogin === undefined || response.statusCode !== 403 || headers.authorization === undefined)
    return relayed;
  const body = await peekResponseBody(response, MAX_ANSWER_BYTES);
  if (body === undefined) return relayed;
  const { responseCode } = await parseAnswer(response, body);
  if (responseCode === RESPONSE_CODE.authenticationNeeded) onIgnoredLogin();
  return { response, body };
}

async function reply(
  { req, res, handle, query }: { req: Request; res: Response; handle: string; query: string },
  { response, body }: RelayedResponse,
  { invalidate, learn }: Pick<WriteRouteDeps, 'invalidate' | 'learn'>,
): Promise<void> {
  // A Handle server refuses only what exists.
  if (response.statusCode === 409) await learn(handle, { exists: true });
  if (isCreateOnly(req) && response.statusCode === 409) {
    response.resume();
    throw new ServiceError('CONDITION_FAILED', { detail: 'it exists already' });
  }
  const read =
    body ?? (isMinting(req, query) ? await peekResponseBody(response, MAX_ANSWER_BYTES) : undefined);
  if (isMinting(req, query) && read !== undefined) {
    const { handle: minted } = await parseAnswer(response, read);
    // The minted name may be in the cache as not found.
    if (minted !== undefined) await invalidate(minted);
  }
  await relayResponse(response, res, { ...(read && { body: read }) });
}

/** A Handle server takes a bare flag for false, and ignores it when there are indexes. */
function isMinting({ method }: Request, query: string): boolean {
  const parameters = readParameters(query);
  const flag = parameters.get('mintNewSuffix')?.toLowerCase();
  return method === 'PUT' && flag === 'true' && !parameters.has('index');
}

function upstreamQuery(req: Request, query: string): string {
  if (!isCreateOnly(req)) return query;
  // readParameters finds `overwrite` where its name is percent-encoded, too.
  const others = query.split('&').filter((part) => part !== '' && !readParameters(part).has('overwrite'));
  return [...others, 'overwrite=false'].join('&');
}
