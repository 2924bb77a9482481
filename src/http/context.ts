// The context of one request in `res.locals`, which never outlives the request, and its id.
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
  /** The route that answers the request; undefined where none does. */
  route?: Route | undefined;
  format: Format;
  /** Undefined until it is parsed. */
  handle?: HandleRef;
  result: Result;
  /** The caller for the limits of the Handle server; undefined until the traffic rules have judged the request. */
  caller?: Caller;
  /** The id that a trusted proxy has sent, or one of our own when something has needed it. */
  requestId?: string | undefined;
  /** The error that the response reports. */
  failure?: ServiceError;
}

/** The context that the read path or the first step of the pipeline has set. */
export function contextOf(res: ServerResponse): RequestContext {
  return (res as unknown as { locals: RequestContext }).locals;
}

/** The caller for reads that are not to be judged as misses: of a login, or that the client has not asked for. */
export const unjudgedCaller = (res: ServerResponse): Caller | undefined => {
  const { caller } = contextOf(res);
  return caller && { ...caller, network: undefined };
};

/** Made when it is first needed: a hit needs none. */
export const requestIdOf = (res: ServerResponse): string => (contextOf(res).requestId ??= randomUUID());

/** Express sets an empty one. */
export const hasContext = (res: ServerResponse): boolean => {
  const { locals } = res as unknown as { locals?: Partial<RequestContext> };
  return locals?.target !== undefined;
};

/** Call it before Express handles the request, which keeps an existing context. */
export function putContext(res: ServerResponse, context: RequestContext): void {
  (res as unknown as { locals: RequestContext }).locals = context;
}

/** The field in a request of a trusted proxy, in a forwarded request, and in an error response. */
export const REQUEST_ID = 'X-Request-Id';

/** As web servers write them: UUIDs, hex digits, Base64, address and counter. Safe in a log line, a header and a page. */
const FORMAT = /^[\w.:=+/@-]{1,128}$/;

/** The id that the request came with; undefined unless it is valid and from a trusted proxy. */
export type AcceptRequestId = (given: string | undefined, req: IncomingMessage) => string | undefined;

export const createAcceptRequestId =
  (isTrustedProxy: (address: string) => boolean): AcceptRequestId =>
  (given, { socket }) =>
    given !== undefined && isTrustedProxy(socket.remoteAddress ?? '') && FORMAT.test(given)
      ? given
      : undefined;
