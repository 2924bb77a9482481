// Handles PUT and DELETE of a handle: translates the request into a write, and the result into a reply.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Host } from '../host.js';
import { ServiceError } from '../errors.js';
import { readHandle } from '../handle/handle.js';
import { type LoggedChange, RESPONSE_CODE, bodyOfMembers } from '../handle/outcome.js';
import type { Handler, RequestContext } from '../http/context.js';
import { identityOf } from '../http/identity.js';
import { isCreateOnly } from '../http/preconditions.js';
import { NO_STORE, sendReply } from '../http/reply.js';
import type { WithBody } from '../http/request-body.js';
import { parseParameters } from '../http/target.js';
import type { Resolver } from '../resolver/resolver.js';
import type { RecordRead } from '../upstream/contract.js';
import { MAX_ANSWER_BYTES } from '../upstream/response.js';
import { assertFound } from '../upstream/upstreams.js';
import type { WriteAnswer } from '../write/decisions.js';
import { type OriginRecord, readVisible } from '../write/origin-record.js';
import type { CarryOut, Deletion, Judged } from '../write/write.js';
import { assertCondition, hasEtagCondition } from './condition.js';
import { forwardResponse, messageOf, parseAnswer, peekResponseBody } from './forward.js';

interface WriteRequest {
  req: IncomingMessage;
  res: ServerResponse;
  context: RequestContext;
  origin: OriginRecord;
  /** Whether the Handle server checks and executes the write atomically. */
  isCreation: boolean;
}

/** An upstream response; `body` is undefined unless it was read. */
interface ForwardedResponse extends WriteAnswer {
  response: IncomingMessage;
  body: Buffer | undefined;
}

export function createWriteRoute(host: Host, withBody: WithBody, carryOut: CarryOut): Handler {
  return async function writeRoute(req, res, context) {
    const { parameters, caller } = context;
    context.result = 'write';
    const isCreation = isCreateOnly(req);
    const hasCondition = !isCreation && hasEtagCondition(req.headers);
    const handle = host.refOf(readHandle(context.target.rawHandle ?? ''));
    context.handle = handle;
    const query = isCreation ? creationQuery(context.target.query) : context.target.query;
    const message = messageOf(context, query);
    const isMinted = isMinting(req, parameters);
    const indexes = writtenIndexes(parameters);
    const { authorization } = req.headers;
    const origin = host.originOf(handle, { caller, authorization, identity: identityOf(authorization) });
    const request = { req, res, context, origin, isCreation };
    const forwarded = await carryOut<Buffer, RecordRead, Judged<ForwardedResponse> | 'refused'>({
      req,
      context,
      origin,
      deletion: req.method === 'DELETE' ? deletionOf(request, host.resolver) : undefined,
      withBody,
      read: hasCondition ? () => readConditionally(request) : undefined,
      attempt(body, _current, send) {
        const forward = async (beforeSend?: () => void): Promise<ForwardedResponse> => {
          const server = assertFound(origin.server);
          const response = await server.forward(req, res, { ...message, body, beforeSend });
          const mayIgnoreLogin =
            server.onIgnoredLogin !== undefined && req.headers.authorization !== undefined;
          return readWritten(response, { isMinted, mayIgnoreLogin });
        };
        return send([forward], { indexes });
      },
    });
    if (forwarded !== 'refused') await reply(request, forwarded, host.resolver);
  };
}

/** Reads the record, and checks the condition. @throws ServiceError PRECONDITION_FAILED */
async function readConditionally({ req, context, origin }: WriteRequest): Promise<RecordRead> {
  const response = await readVisible(origin, { authoritative: true });
  const { length } = response.body;
  const indexes = context.parameters.getAll('index');
  const condition = { req, handle: origin.handle.text, indexes };
  await context.runSteps(assertCondition(condition, response), length);
  return response;
}

/** Returns the indexes in the query; undefined for a write of the whole record. */
function writtenIndexes(parameters: URLSearchParams): LoggedChange['indexes'] {
  const given = parameters.getAll('index');
  if (given.length === 0) return undefined;
  const indexes = given.map(Number);
  return indexes.every(Number.isInteger) ? indexes : 'various';
}

/** Reads the body only for the response code of a 404 or of an ignored login, and for a minted handle. */
async function readWritten(
  response: IncomingMessage,
  { isMinted, mayIgnoreLogin }: { isMinted: boolean; mayIgnoreLogin: boolean },
): Promise<ForwardedResponse> {
  const { statusCode: status = 0 } = response;
  const isRead = status === 404 || (isMinted && status < 300) || (mayIgnoreLogin && status === 403);
  const body = isRead ? await peekResponseBody(response, MAX_ANSWER_BYTES) : undefined;
  const { responseCode, handle } = body === undefined ? {} : await parseAnswer(response, body);
  return { response, body, status, responseCode, minted: isMinted ? handle : undefined };
}

/** Builds the reply for disabled deletion: 403, or 404 if the handle does not exist. */
function deletionOf(
  { req, res, context, origin: { handle } }: WriteRequest,
  resolver: Resolver,
): Deletion<'refused'> {
  const scope = context.parameters.has('index') ? 'values' : 'handle';
  return {
    scope,
    async refuse() {
      // The handle is assumed to exist if the upstream fails.
      const reading = resolver.resolve(handle, { authoritative: false, caller: context.caller });
      const found = await reading.catch(() => undefined);
      if (found?.kind !== 'entry' || found.entry.kind !== 'not-found')
        throw new ServiceError('NO_DELETE', { message: NO_DELETE[scope] });
      context.result = 'refused';
      await sendReply(req, res, {
        status: 404,
        json: bodyOfMembers({ responseCode: RESPONSE_CODE.handleNotFound }, handle.text),
        headers: NO_STORE,
      });
      return 'refused';
    },
  };
}

const NO_DELETE = {
  handle: 'Deletion of handles is deactivated on this proxy (nodelete)',
  values: 'Deletion of values is deactivated on this proxy (nodelete)',
};

async function reply(
  request: WriteRequest,
  forwarded: Judged<ForwardedResponse>,
  resolver: Resolver,
): Promise<void> {
  const { res, origin } = request;
  const { response, status } = forwarded;
  // A Handle server sends 409 only if the handle exists.
  if (status === 409) await resolver.learn(origin.handle, { exists: true });
  if (request.isCreation && status === 409) {
    response.resume();
    throw new ServiceError('PRECONDITION_FAILED', { detail: 'it exists already' });
  }
  await forwardResponse(response, res, forwarded);
}

/** Whether the server mints a new handle: not for a bare flag, nor for one with indexes in the query. */
function isMinting({ method }: IncomingMessage, parameters: URLSearchParams): boolean {
  const flag = parameters.get('mintNewSuffix')?.toLowerCase();
  return method === 'PUT' && flag === 'true' && !parameters.has('index');
}

/** Returns the query of a write that the server executes only for a new handle. */
function creationQuery(query: string): string {
  // Names may be percent-encoded. `&` in front, because URLSearchParams drops a `?` at the start.
  const names = [...parseParameters(`&${query}`).keys()];
  const parts = query.split('&').filter((part) => part !== '');
  const others = parts.filter((_part, at) => names[at] !== 'overwrite');
  return [...others, 'overwrite=false'].join('&');
}
