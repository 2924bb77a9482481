// The context and the id of a request, in `res.locals`, which never outlives the request.
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ServiceError } from '../errors.js';
import type { HandleRef } from '../handle/handle.js';
import type { Caller } from '../upstream/caller.js';
import type { Format } from './query.js';
import type { Place, Route } from './route-table.js';

/** The result of a request, for log and metrics. */
export type Result =
  | 'hit'
  | 'miss'
  | 'stale'
  | 'authoritative'
  | 'refused'
  | 'batch'
  | 'bypass'
  | 'write'
  | 'error'
  | 'invalid'
  | 'local';

export interface RequestContext extends Place {
  /** The interface, for metrics. */
  family: 'record' | 'v2' | 'redirect' | 'native-tunnel';
  /** The route of the request; undefined if none matches. */
  route?: Route | undefined;
  format: Format;
  /** Undefined until the path is parsed. */
  handle?: HandleRef | undefined;
  result: Result;
  /** The caller for upstream limits; undefined until the traffic rules have run. */
  caller?: Caller;
  /** Id sent by a trusted proxy, or generated on first use. */
  requestId?: string | undefined;
  /** The error that the response reports. */
  failure?: ServiceError;
}

/** The context that the read path or the first step of the pipeline has set. */
export function contextOf(res: ServerResponse): RequestContext {
  return (res as unknown as { locals: RequestContext }).locals;
}

/** The caller for reads that do not count as misses of its network: with a login, or not requested by the client. */
export const unjudgedCaller = (res: ServerResponse): Caller | undefined => {
  const { caller } = contextOf(res);
  return caller && { ...caller, network: undefined };
};

/** The id of the request, generated on first use, because a hit needs none. */
export const requestIdOf = (res: ServerResponse): string => (contextOf(res).requestId ??= randomUUID());

/** Whether the request has a context. Express sets an empty `locals`. */
export const hasContext = (res: ServerResponse): boolean => {
  const { locals } = res as unknown as { locals?: Partial<RequestContext> };
  return locals?.target !== undefined;
};

/** Sets the context. Call it before Express handles the request; Express keeps existing `locals`. */
export function putContext(res: ServerResponse, context: RequestContext): void {
  (res as unknown as { locals: RequestContext }).locals = context;
}

/** Header of requests from trusted proxies, of forwarded requests and of error responses. */
export const REQUEST_ID = 'X-Request-Id';

/** Ids of web servers: UUIDs, hex digits, Base64, address and counter. Safe in a log line, a header and a page. */
const FORMAT = /^[\w.:=+/@-]{1,128}$/;

/** The received id; undefined if it is invalid or not from a trusted proxy. */
export type AcceptRequestId = (given: string | undefined, req: IncomingMessage) => string | undefined;

export const createAcceptRequestId =
  (isTrustedProxy: (address: string) => boolean): AcceptRequestId =>
  (given, { socket }) =>
    given !== undefined && isTrustedProxy(socket.remoteAddress ?? '') && FORMAT.test(given)
      ? given
      : undefined;
