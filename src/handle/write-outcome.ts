// Whether a write changed the record, judged by the answer to it. The one place for this rule.
import { RESPONSE_CODE } from './response-codes.js';

/**
 * `changed`: entries are invalid. `unchanged`: they are as good as before. `unknown`: the server may have carried
 * the write out, or may still do so.
 */
export type WriteOutcome = 'changed' | 'unchanged' | 'unknown';

export interface WriteAnswer {
  status: number;
  /** Undefined where the answer is no Handle JSON, or was not read. */
  responseCode?: number | undefined;
}

/**
 * A Handle server refuses with 3xx, 4xx and 501 before it touches the record (recordings "PUT …", "DELETE …",
 * "clientCert=true"). A 404 says that the record is gone, so an entry of it is invalid; only another response
 * code than 100 contradicts that. Any other 5xx may come from a gateway that gave up on a server still at work.
 */
export function judgeWrite({ status, responseCode }: WriteAnswer): WriteOutcome {
  if (status >= 200 && status < 300) return 'changed';
  if (status === 404) return isMissing(responseCode) ? 'changed' : 'unchanged';
  if ((status >= 300 && status < 500) || status === 501) return 'unchanged';
  return 'unknown';
}

const isMissing = (responseCode: number | undefined): boolean =>
  responseCode === undefined || responseCode === RESPONSE_CODE.handleNotFound;
