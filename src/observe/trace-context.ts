// The W3C trace context (Recommendation of 2021-11-23): which trace a request belongs to.
import { randomBytes } from 'node:crypto';

export interface TraceContext {
  /** 32 hex digits. */
  traceId: string;
  /** 16 hex digits; of the caller's span, or of ours. */
  spanId: string;
  isSampled: boolean;
}

const ALL_ZEROS = /^0+$/;

/** Undefined for a header that is not well-formed: then a trace of our own begins (section 2.2 and 4.3). */
export function readTraceParent(header: string | undefined): TraceContext | undefined {
  const match = /^(?!ff)[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(?:-.*)?$/.exec(header ?? '');
  const [, traceId = '', spanId = '', flags = ''] = match ?? [];
  if (match === null || ALL_ZEROS.test(traceId) || ALL_ZEROS.test(spanId)) return undefined;
  return { traceId, spanId, isSampled: (parseInt(flags, 16) & 1) === 1 };
}

export const newTraceId = (): string => randomBytes(16).toString('hex');
export const newSpanId = (): string => randomBytes(8).toString('hex');
