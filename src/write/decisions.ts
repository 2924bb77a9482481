// The decisions of a write as pure functions: whether it may delete, and whether its response changed the record.
import { type ErrorCode, ServiceError } from '../errors.js';
import { upperAscii } from '../handle/handle.js';
import type { WriteOutcome } from '../handle/outcome.js';
import { RESPONSE_CODE } from '../handle/response-codes.js';

/** The configuration under `deletion`. */
export interface DeletionRules {
  /** Whole handles. */
  handles: boolean;
  /** Single values (`?index=`). */
  values: boolean;
  /** Patterns of handles that may always be deleted; `*` matches any text. */
  allowedFor: readonly string[];
}

/** Whether a deletion is allowed. By default none is, because identifiers are meant to stay. */
export function allowsDeletion(
  { handles, values, allowedFor }: DeletionRules,
  scope: 'handle' | 'values',
  handle: string,
): boolean {
  if (scope === 'handle' ? handles : values) return true;
  return allowedFor.some((pattern) => matches(pattern, handle));
}

function matches(pattern: string, handle: string): boolean {
  const parts = pattern.split('*').map((part) => upperAscii(part).replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
  return new RegExp(`^${parts.join('[^]*')}$`).test(upperAscii(handle));
}

/** A response of the Handle server to a write. */
export interface WriteAnswer {
  status: number;
  /** Undefined if the response is not Handle JSON, or was not read. */
  responseCode?: number | undefined;
}

/** The outcome of one request. `result`: the response of the Handle server, or the error that came instead. */
export function judgeWrite(result: WriteAnswer | { failure: unknown }): WriteOutcome {
  if ('failure' in result) return wasSent(result.failure) ? 'unknown' : 'unchanged';
  const { status, responseCode } = result;
  // A Handle server refuses with 3xx, 4xx and 501 before it touches the record (recordings "PUT …", "DELETE …",
  // "clientCert=true"). Any other 5xx may come from a gateway that gave up while the server is still at work.
  if (status >= 200 && status < 300) return 'changed';
  if (status === 404) return isMissing(responseCode) ? 'changed' : 'unchanged';
  if ((status >= 300 && status < 500) || status === 501) return 'unchanged';
  return 'unknown';
}

/** The outcome of a write in several requests: unknown if any is unknown, otherwise changed if any has changed the record. */
export function combineOutcomes(outcomes: readonly WriteOutcome[]): WriteOutcome {
  if (outcomes.includes('unknown')) return 'unknown';
  return outcomes.includes('changed') ? 'changed' : 'unchanged';
}

/** A 404 says that the record is gone, so its entry is invalid; only another response code contradicts that. */
const isMissing = (responseCode: number | undefined): boolean =>
  responseCode === undefined || responseCode === RESPONSE_CODE.handleNotFound;

/** Codes of a write that ended before a byte was sent. BAD_REQUEST: the client left the queue. */
const NEVER_SENT: readonly ErrorCode[] = ['BAD_REQUEST', 'UPSTREAM_REFUSED', 'OVERLOADED', 'NOT_LOCKED'];

const wasSent = (failure: unknown): boolean =>
  !(failure instanceof ServiceError && NEVER_SENT.includes(failure.code));
