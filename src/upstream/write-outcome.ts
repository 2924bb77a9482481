// Whether a write changed a record, judged by its response or error. The only place for this rule.
import { type ErrorCode, ServiceError } from '../errors.js';
import type { WriteOutcome } from '../handle/outcome.js';
import { RESPONSE_CODE } from '../handle/response-codes.js';

/** The response of the Handle server, or the error that came instead. */
export type WriteResult =
  | {
      status: number;
      /** Undefined where the response is not Handle JSON, or was not read. */
      responseCode?: number | undefined;
    }
  | { failure: unknown };

export function judgeWrite(result: WriteResult): WriteOutcome {
  if ('failure' in result) return wasSent(result.failure) ? 'unknown' : 'unchanged';
  const { status, responseCode } = result;
  // A Handle server refuses with 3xx, 4xx and 501 before it touches the record (recordings "PUT …", "DELETE …",
  // "clientCert=true"). Any other 5xx may come from a gateway that gave up while the server is still at work.
  if (status >= 200 && status < 300) return 'changed';
  if (status === 404) return isMissing(responseCode) ? 'changed' : 'unchanged';
  if ((status >= 300 && status < 500) || status === 501) return 'unchanged';
  return 'unknown';
}

/**
 * The outcome of a write in several steps: it changed the record when one of its steps did, and is unknown when one
 * of them is.
 */
export function combineOutcomes(outcomes: readonly WriteOutcome[]): WriteOutcome {
  if (outcomes.includes('unknown')) return 'unknown';
  return outcomes.includes('changed') ? 'changed' : 'unchanged';
}

/**
 * Applies the outcome of a write and lowers its fence. Where the record changed, the entry is invalidated on every
 * instance, and this ends when all have acknowledged it or lost their lease: only then may the caller get its reply.
 */
export async function settle(
  fence: Record<WriteOutcome, () => Promise<void>>,
  outcome: WriteOutcome,
): Promise<void> {
  try {
    await fence[outcome]();
  } catch (error) {
    throw outcome === 'unchanged' ? error : withoutRetryAfter(error);
  }
}

/** A client must not be told to repeat a write that may have been carried out. */
export function withoutRetryAfter(error: unknown): unknown {
  if (!(error instanceof ServiceError) || error.upstreamAnswer !== undefined) return error;
  const { code, message, responseCode, upstreamStatus, diagnosis, cause } = error;
  const details = { message, responseCode, upstreamStatus, diagnosis, cause };
  return new ServiceError(code, { ...details, retryAfterMs: 'never' });
}

/** A 404 says that the record is gone, so its entry is invalid; only another response code contradicts that. */
const isMissing = (responseCode: number | undefined): boolean =>
  responseCode === undefined || responseCode === RESPONSE_CODE.handleNotFound;

/** Codes of a write that ended before a byte was sent. BAD_REQUEST: the client left the queue. */
const NEVER_SENT: readonly ErrorCode[] = ['BAD_REQUEST', 'UPSTREAM_REFUSED', 'OVERLOADED', 'NOT_LOCKED'];

const wasSent = (failure: unknown): boolean =>
  !(failure instanceof ServiceError && NEVER_SENT.includes(failure.code));
