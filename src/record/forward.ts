// Forwards requests whose responses are never cached or shared: reads that `read.ts` does not serve, POST of a
// handle, lists, other endpoints. A reload preserves the forwarder.
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { Host } from '../host.js';
import { ServiceError } from '../errors.js';
import { appendChunk, tryDecode } from '../handle/bytes.js';
import { handleToPath, readHandle } from '../handle/handle.js';
import { extractObject, parseJson } from '../handle/json.js';
import { RESPONSE_CODE, type WriteOutcome } from '../handle/outcome.js';
import { VARY } from '../http/cache-headers.js';
import { type RequestContext, requestIdOf } from '../http/context.js';
import { exposeHeaders } from '../http/cors.js';
import { forbidSniffing } from '../http/raw-response.js';
import type { RecordForm } from '../http/reply.js';
import type { WithBody } from '../http/request-body.js';
import { type Place, restOf } from '../http/route-table.js';
import { assertPlain, isOfSessions, originForm, readRecordQuery } from '../http/target.js';
import type { Resolver } from '../resolver/resolver.js';
import type { ForwardOptions, OriginServer } from '../upstream/contract.js';
import { MAX_ANSWER_BYTES, decodeBody } from '../upstream/response.js';
import { assertFound, notResponsible } from '../upstream/upstreams.js';
import { etagOfResponse } from './condition.js';

/** Forwards a request. `server`: where to, if the caller knows the server of the handle, the list or the endpoint. */
export type Forward = (
  req: IncomingMessage,
  res: ServerResponse,
  context: RequestContext,
  server?: Pick<OriginServer, 'forward'>,
) => Promise<void>;

export function createForward(host: Host, withBody: WithBody): Forward {
  const { resolver } = host;
  // A record is buffered for its ETag; larger ones are rejected.
  const { maxRecordBytes } = host.settings.current.upstream;
  return async function forward(req, res, context, server) {
    if (context.handle === undefined) assertPlain(context.target.path);
    context.result = 'bypass';
    const message = messageOf(context);
    const response = await withBody(req, (body) =>
      (server ?? serverFor(context, host)).forward(req, res, { ...message, body }),
    );
    // http-proxy-middleware destroys the response only for a client that leaves later.
    if (res.destroyed) response.destroy();
    if (!isRecord(req, response, context)) {
      // A response that fails before the first byte of its body is an error to which the client gets an answer.
      const body = (await learnFrom(response, context, resolver)) ?? (await peekResponseBody(response, 0));
      await forwardResponse(response, res, { body });
      return;
    }
    const body = await readResponseBody(response, maxRecordBytes);
    // A body that fails to decode gets no ETag, whatever the query selects.
    const decoded = await decodeResponseBody(response, body, maxRecordBytes);
    const encoding = isGzipEncoded(response.headers) ? 'gzip' : 'identity';
    const etag =
      decoded && (await context.runSteps(etagOfResponse(decoded, formOf(context), encoding), decoded.length));
    await forwardResponse(response, res, { body, etag });
  };
}

/** Returns what is sent besides the body; the handle re-encoded, so that every URL parser on the way reads it alike. */
export function messageOf(
  context: RequestContext,
  query: string = context.target.query,
): Omit<ForwardOptions, 'body'> {
  const { handle, caller, client, target } = context;
  const path = handle === undefined ? target.path : `/api/handles/${handleToPath(handle.text)}`;
  return {
    target: originForm(path, query),
    isOfSessions: isOfSessions(path),
    handle,
    caller,
    peer: client.peer,
    requestId: requestIdOf(context),
  };
}

/** Invalidates the entry if a 404 shows that the handle does not exist. Returns the body if it was read. */
async function learnFrom(
  response: IncomingMessage,
  { handle }: RequestContext,
  resolver: Resolver,
): Promise<Buffer | undefined> {
  if (handle === undefined || response.statusCode !== 404) return undefined;
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
  (headers['content-encoding'] === undefined || isGzipEncoded(headers));

const isGzipEncoded = (headers: IncomingHttpHeaders): boolean => headers['content-encoding'] === 'gzip';

const formOf = ({ handle, parameters, format }: RequestContext): RecordForm => ({
  handle: handle?.text ?? '',
  selection: readRecordQuery(parameters),
  format,
});

/**
 * Returns the server of a request: the server of its handle, of the handle that it verifies or of the prefix
 * that it lists, otherwise the main server.
 *
 * @throws ServiceError NOT_RESPONSIBLE, or the refusal of a server that takes no requests
 */
function serverFor(context: RequestContext, { upstreams: { main, findServers }, refOf }: Host): OriginServer {
  const { target, parameters } = context;
  const prefix = target.rawHandle === '' ? parameters.get('prefix') : null;
  const verified = handleToVerify(context);
  const named = verified ?? (prefix === null ? undefined : `${prefix}/`);
  const handle = context.handle ?? (named === undefined ? undefined : refOf(named));
  const server = handle === undefined ? main : findServers(handle)[0];
  // A repository has no keys, by which any method could verify.
  if (server?.source.forwards === false)
    throw verified === undefined ? server.source.refusal() : notResponsible();
  return assertFound(server);
}

/** Extracts the handle from a verification request, whose path ends in a key such as `300:21.T1/USER`. */
function handleToVerify(place: Place): string | undefined {
  if (place.match?.routes[0]?.id !== 'verify') return undefined;
  const rest = restOf(place);
  return rest === '' ? undefined : readHandle(rest).replace(/^\d+:/, '');
}

/** Headers that this proxy sets itself. */
const OURS = new Set([
  'vary',
  'cache-control',
  'server',
  'date',
  'x-content-type-options',
  'access-control-allow-origin',
  // Any origin may read, and so none with the credentials that a browser stores.
  'access-control-allow-credentials',
  'access-control-expose-headers',
]);

/** Matches headers that caches and web servers in front prefer to `Cache-Control`, such as those of RFC 9213. */
const FOR_FRONTS = /^(?:expires$|surrogate-|x-accel-)|-cache-control$/;

/** Forwards a response as `no-store`, because it belongs to a write or to a read that is never cached. */
export async function forwardResponse(
  response: IncomingMessage,
  res: ServerResponse,
  /** `body` is set if it has already been read, and `outcome` for a write. */
  { body, etag, outcome }: { body?: Buffer | undefined; etag?: string | undefined; outcome?: WriteOutcome },
): Promise<void> {
  res.statusCode = response.statusCode ?? 502;
  for (const { name, values } of headersToForward(response)) res.setHeader(name, values);
  if (etag !== undefined) res.setHeader('ETag', etag);
  // The client must not be told to repeat a write that may have been executed.
  if (outcome === 'unknown') res.removeHeader('Retry-After');
  // A 204 must not have Content-Length (RFC 9110 §8.6).
  if (response.statusCode === 204) res.removeHeader('Content-Length');
  res.setHeader('Cache-Control', 'no-store');
  res.setHeader('Cache-Status', 'handle-resolver-proxy; fwd=bypass');
  res.setHeader('Vary', VARY);
  forbidSniffing(res);
  exposeHeaders(res);
  if (body !== undefined) {
    res.end(body);
    return;
  }
  // If the client disconnects or the upstream aborts, both sides are closed, because no response can follow.
  await pipeline(response, res).catch(() => undefined);
}

/** Returns each header once, in its first spelling: `setHeader` replaces those of other spellings. */
function headersToForward({ rawHeaders }: IncomingMessage): Iterable<{ name: string; values: string[] }> {
  const kept = new Map<string, { name: string; values: string[] }>();
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const [name, value] = [rawHeaders[at] ?? '', rawHeaders[at + 1] ?? ''];
    const lower = name.toLowerCase();
    if (OURS.has(lower) || FOR_FRONTS.test(lower)) continue;
    const known = kept.get(lower);
    if (known === undefined) kept.set(lower, { name, values: [value] });
    else known.values.push(value);
  }
  return kept.values();
}

/** Reads the whole body. @throws ServiceError UPSTREAM_INVALID_RESPONSE if it is aborted or too long */
async function readResponseBody(response: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const body = await peekResponseBody(response, maxBytes);
  if (body !== undefined) return body;
  response.destroy();
  throw badResponse('it is too long');
}

/** Reads the body; undefined if it exceeds `maxBytes`, and can still be forwarded. @throws ServiceError if aborted */
export async function peekResponseBody(
  response: IncomingMessage,
  maxBytes: number,
): Promise<Buffer | undefined> {
  let bytes: Buffer = Buffer.alloc(0);
  let length = 0;
  try {
    for await (const chunk of response.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      bytes = length === 0 ? chunk : appendChunk(bytes, length, chunk);
      length += chunk.length;
      if (length > maxBytes) break;
    }
  } catch (cause) {
    throw badResponse('it was aborted', cause);
  }
  const body = bytes.subarray(0, length);
  if (length <= maxBytes) return body;
  response.unshift(body);
  return undefined;
}

const badResponse = (problem: string, cause?: unknown): ServiceError =>
  new ServiceError('UPSTREAM_INVALID_RESPONSE', { diagnosis: { cause: problem }, cause });

/** Decodes the content codings of a body; undefined if decoding fails or exceeds `maxBytes`. */
function decodeResponseBody(
  { statusCode: status = 0, headers }: IncomingMessage,
  body: Buffer,
  maxBytes: number,
): Promise<Buffer | undefined> {
  if (headers['content-encoding'] === undefined) return Promise.resolve(body);
  return decodeBody({ status, headers, body }, maxBytes).catch(() => undefined);
}

/** Reads the handle and the response code of a Handle response, if present. The body may be compressed. */
export async function parseAnswer(response: IncomingMessage, body: Buffer) {
  const decoded = await decodeResponseBody(response, body, MAX_ANSWER_BYTES);
  const { handle, responseCode } = (decoded && tryDecode(parsedMembers, decoded)) ?? {};
  return {
    handle: typeof handle === 'string' ? handle : undefined,
    responseCode: typeof responseCode === 'number' ? responseCode : undefined,
  };
}

const parsedMembers = (body: Buffer) =>
  parseJson(extractObject(body.toString('utf8'))) as { handle?: unknown; responseCode?: unknown };
