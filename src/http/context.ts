// What the pipeline knows of one request. It lives in `res.locals` and never outlives the request.
import type { Response } from 'express';
import type { Format } from './question.js';
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
  result: Result;
}

/** The context that the first step of the pipeline put there. */
export function contextOf(res: Response): RequestContext {
  return res.locals as RequestContext;
}
