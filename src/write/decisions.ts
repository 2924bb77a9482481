// Write decisions as pure functions: whether a deletion is allowed, and whether a response changed the record.
import type { Config } from '../config/schema.js';
import { ServiceError } from '../errors.js';
import { compileGlobs } from '../handle/handle.js';
import { RESPONSE_CODE, type WriteOutcome } from '../handle/outcome.js';

/** Whether a deletion is allowed. The default is no, because identifiers should persist. */
export function allowsDeletion(
  { handles, values, allowedFor }: Config['deletion'],
  scope: 'handle' | 'values',
  handle: string,
): boolean {
  if (scope === 'handle' ? handles : values) return true;
  // Compiled here, because a reload may change the patterns.
  return compileGlobs(allowedFor)(handle);
}

/** A Handle server's response to a write. */
export interface WriteAnswer {
  status: number;
  /** Undefined if the response is not Handle JSON, or was not read. */
  responseCode?: number | undefined;
  /** The minted handle, if any. */
  minted?: string | undefined;
}

/** Returns the outcome of one request. `result`: the Handle server's response, or the error thrown instead. */
export function judgeWrite(result: WriteAnswer | { failure: unknown }): WriteOutcome {
  if ('failure' in result) return wasSent(result.failure) ? 'unknown' : 'unchanged';
  const { status, responseCode } = result;
  // A Handle server that responds with 3xx, 4xx or 501 has not touched the record (recordings "PUT …",
  // "DELETE …", "clientCert=true"). Any other 5xx may come from a gateway that timed out while the server
  // still executes the write.
  if (status >= 200 && status < 300) return 'changed';
  if (status === 404) return meansMissing(responseCode) ? 'changed' : 'unchanged';
  if ((status >= 300 && status < 500) || status === 501) return 'unchanged';
  return 'unknown';
}

/** Whether a 404 means that the record is gone: without a response code, or with that of a missing handle. */
const meansMissing = (responseCode: number | undefined): boolean =>
  responseCode === undefined || responseCode === RESPONSE_CODE.handleNotFound;

/** Error codes of writes that failed before sending a byte. BAD_REQUEST: the client left the queue. */
const NEVER_SENT: readonly string[] = [
  'BAD_REQUEST',
  'UPSTREAM_CONNECT_FAILED',
  'OVERLOADED',
  'LOCK_UNAVAILABLE',
];

const wasSent = (failure: unknown): boolean =>
  !(failure instanceof ServiceError && NEVER_SENT.includes(failure.code));
