// The context of one request in `res.locals`. It never outlives the request.
import type { ServerResponse } from 'node:http';
import type { ServiceError } from '../errors.js';
import type { Format } from './query.js';
import type { Target } from './target.js';

/** The result of a request, for log and metrics. */
export type Result =
  'hit' | 'miss' | 'stale' | 'authoritative' | 'refused' | 'bypass' | 'write' | 'error' | 'invalid' | 'local';

export interface RequestContext {
  /** The interface, for metrics. */
  family: 'record' | 'v2' | 'redirect';
  target: Target;
  format: Format;
  /** The decoded handle; undefined until it is parsed. */
  handle?: string;
  result: Result;
  /** The error that the response reports. */
  failure?: ServiceError;
}

/** The context that read.ts or the first step of the pipeline has set. */
export function contextOf(res: ServerResponse): RequestContext {
  return (res as unknown as { locals: RequestContext }).locals;
}

/** Express sets an empty one. */
export const hasContext = (res: ServerResponse): boolean => {
  const context: Partial<RequestContext> = contextOf(res);
  return context.target !== undefined;
};

/** Call it before Express handles the request, which keeps an existing context. */
export function putContext(res: ServerResponse, context: RequestContext): void {
  (res as unknown as { locals: RequestContext }).locals = context;
}
