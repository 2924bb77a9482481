// Forwards requests whose responses are never cached or shared: reads that `read.ts` does not serve, POST of a
// handle, lists, other endpoints. A reload preserves the forwarder.
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Config } from '../config/schema.js';
import { RESPONSE_CODE } from '../handle/response-codes.js';
import { type RequestContext, contextOf } from '../http/context.js';
import { readRecordQuery } from '../http/query.js';
import type { Encoding } from '../http/representation.js';
import { type MemoryBudget, type WithBody, createWithBody } from '../http/request-body.js';
import type { RunStepsOf } from '../http/request-work.js';
import { type Place, restOf } from '../http/route-table.js';
import { assertPlain, isList, rawHandleOf, readHandle } from '../http/target.js';
import type { Resolver } from '../resolver/resolver.js';
import type { Steps } from '../time-slicer.js';
import { type OriginServer, assertForwards } from '../upstream/contract.js';
import { MAX_ANSWER_BYTES } from '../upstream/response.js';
import { type Upstreams, assertFound } from '../upstream/upstreams.js';
import { parseRecord, recordEtag } from './condition.js';
import {
  type ForwardRequest,
  type ForwardingHop,
  createForwardRequest,
  limitForwards,
  upstreamTarget,
} from './forward-request.js';
import {
  decodeResponseBody,
  forwardResponse,
  parseAnswer,
  peekResponseBody,
  readResponseBody,
} from './forward-response.js';

export interface Forwarding {
  withBody: WithBody;
  forwardRequest: ForwardRequest;
  forward: Forward;
}

type ForwardingSettings = Pick<Config, 'http' | 'upstream'>;

interface ForwardingParts extends ForwardingHop {
  upstreams: Pick<Upstreams, 'main' | 'findServers'>;
  resolver: Pick<Resolver, 'learn' | 'refOf'>;
  runStepsOf: RunStepsOf;
  bodies: MemoryBudget;
}

export function createForwarding(settings: ForwardingSettings, parts: ForwardingParts): Forwarding {
  const { maxBodyBytes } = settings.http;
  const { maxRecordBytes } = settings.upstream;
  const { resolver, runStepsOf } = parts;
  const withBody = createWithBody({ maxBodyBytes, budget: parts.bodies });
  const forwardRequest = routeForwards(parts);
  return {
    withBody,
    forwardRequest,
    forward: createForward({ withBody, forwardRequest, resolver, maxRecordBytes, runStepsOf }),
  };
}

interface ForwardDeps {
  withBody: WithBody;
  forwardRequest: ForwardRequest;
  /** Undefined if the server's records are not cached. */
  resolver?: Pick<Resolver, 'learn'>;
  /** Maximum size of a record, which is buffered for its ETag; larger records are rejected. */
  maxRecordBytes: number;
  runStepsOf: RunStepsOf;
}

export type Forward = (req: IncomingMessage, res: ServerResponse) => Promise<void>;

export function createForward({
  withBody,
  forwardRequest,
  resolver,
  maxRecordBytes,
  runStepsOf,
}: ForwardDeps): Forward {
  return async function forward(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const context = contextOf(res);
    if (context.handle === undefined) assertPlain(context.target.path);
    context.result = 'bypass';
    const target = upstreamTarget(context);
    const response = await withBody(req, (body) => forwardRequest(req, res, { target, body }));
    if (!isRecord(req, response, context)) {
      const body = await learnFrom(response, context, resolver);
      await forwardResponse(response, res, { body });
      return;
    }
    const body = await readResponseBody(response, maxRecordBytes);
    // A body that fails to decode gets no ETag.
    const decoded = await decodeResponseBody(response, body, maxRecordBytes);
    const encoding = isGzip(response.headers) ? 'gzip' : 'identity';
    const etag = decoded && (await runStepsOf(res)(etagFor(decoded, context, encoding), decoded.length));
    await forwardResponse(response, res, { body, etag });
  };
}

/** Invalidates the entry if a 404 shows that the handle does not exist. Returns the body if it was read. */
async function learnFrom(
  response: IncomingMessage,
  { handle }: RequestContext,
  resolver: ForwardDeps['resolver'],
): Promise<Buffer | undefined> {
  if (resolver === undefined || handle === undefined || response.statusCode !== 404) return undefined;
  const body = await peekResponseBody(response, MAX_ANSWER_BYTES);
  const isMissing = body && (await parseAnswer(response, body)).responseCode === RESPONSE_CODE.handleNotFound;
  if (isMissing) await resolver.learn(handle, { exists: false });
  return body;
}

/** Whether the response is a record, which needs an ETag for conditional writes. */
const isRecord = (
  { method }: IncomingMessage,
  { statusCode, headers }: IncomingMessage,
  { handle }: RequestContext,
): boolean =>
  method === 'GET' &&
  handle !== undefined &&
  statusCode === 200 &&
  (headers['content-encoding'] === undefined || isGzip(headers));

const isGzip = (headers: IncomingHttpHeaders): boolean => headers['content-encoding'] === 'gzip';

function* etagFor(
  body: Buffer,
  { handle, parameters, format }: RequestContext,
  encoding: Encoding,
): Steps<string | undefined> {
  const record = yield* parseRecord(body.toString());
  const selection = readRecordQuery(parameters);
  return record && (yield* recordEtag(record, { handle: handle?.text ?? '', selection, format, encoding }));
}

/** Returns a forwarder that selects the responsible server. */
function routeForwards(parts: ForwardingParts): ForwardRequest {
  const forwards = new Map<OriginServer, ForwardRequest>();
  const forwardTo = (server: OriginServer): ForwardRequest => {
    const forward =
      forwards.get(server) ?? limitForwards(createForwardRequest(server, parts), server.limiter);
    forwards.set(server, forward);
    return forward;
  };
  return (req, res, content) => {
    const server = content.origin?.server ?? serverFor(contextOf(res), parts);
    assertForwards(server);
    return forwardTo(assertFound(server))(req, res, content);
  };
}

/**
 * Returns the server of a request: the server of its handle, of the handle that it verifies or of the prefix
 * that it lists, otherwise the main server.
 */
function serverFor(
  context: RequestContext,
  { upstreams: { main, findServers }, resolver: { refOf } }: Pick<ForwardingParts, 'upstreams' | 'resolver'>,
): OriginServer | undefined {
  const { handle, target, parameters } = context;
  if (handle !== undefined) return findServers(handle)[0];
  const verified = handleToVerify(context);
  if (verified !== undefined) return findServers(refOf(verified))[0];
  const isListed = isList(rawHandleOf(target.path) ?? '-', parameters);
  if (isListed) return findServers(refOf(`${parameters.get('prefix') ?? ''}/`))[0];
  return main;
}

/** Extracts the handle from a verification request, whose path ends in a key such as `300:21.T1/USER`. */
function handleToVerify(place: Place): string | undefined {
  const rest = restOf(place);
  if (rest === '' || place.match?.routes[0]?.id !== 'verify') return undefined;
  return readHandle(rest).replace(/^\d+:/, '');
}
