// What the pipeline knows of one request. It lives in `res.locals` and never outlives the request.
import type { ServerResponse } from 'node:http';
import type { Resolution } from '../resolver/resolution.js';
import type { Format } from './query.js';
import type { Target } from './target.js';

/** What became of a request, for log and metrics. */
export type Result =
  'hit' | 'miss' | 'stale' | 'authoritative' | 'refused' | 'bypass' | 'write' | 'error' | 'invalid' | 'local';

export interface RequestContext {
  /** Which interface is asked, for metrics. */
  family: 'record' | 'v2' | 'redirect';
  target: Target;
  format: Format;
  /** The decoded handle, once it is known. */
  handle?: string;
  /** What the resolver was asked before Express was entered. */
  begun?: Promise<Resolution>;
  result: Result;
}

/** The context that the first step of the pipeline put there, or who came before it. */
export function contextOf(res: ServerResponse): RequestContext {
  return (res as unknown as { locals: RequestContext }).locals;
}

/** Express brings an empty one along. */
export const hasContext = (res: ServerResponse): boolean => {
  const context: Partial<RequestContext> = contextOf(res);
  return context.target !== undefined;
};

/** To be called before Express looks at the response, which takes what is there. */
export function putContext(res: ServerResponse, context: RequestContext): void {
  (res as unknown as { locals: RequestContext }).locals = context;
}
