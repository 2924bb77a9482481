// What becomes of a request: response code and body, and the result for log and metrics.
import type { Entry } from '../cache/entry.js';
import type { ServiceError } from '../errors.js';
import { RESPONSE_CODE } from '../handle/response-codes.js';
import type { Result } from '../http/context.js';
import { resultOfError } from '../http/error-reply.js';
import type { ResponseBody } from './codec/response.js';

export interface Outcome {
  responseCode: number;
  body: ResponseBody;
  result: Result;
  failure?: ServiceError;
  /** The fresh entry in memory that it was made of. */
  entry?: Entry;
}

/** A response without anything but a text, which a server often leaves empty. */
export const refusal = (responseCode: number, result: Result, text = ''): Outcome => ({
  responseCode,
  body: { kind: 'text', text },
  result,
});

/**
 * A client takes response code 2 for a failed connection and asks the next site. 3, 4 and 7 it takes for the answer
 * (recordings "client: fault: UDP answers RC …").
 */
export function failed(failure: ServiceError): Outcome {
  const { status, message } = failure;
  return { ...refusal(RESPONSE_CODE.error, resultOfError(status), message), failure };
}
