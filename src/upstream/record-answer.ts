// What a Handle server answered to one caller: its refusals are answers too.
import { RESPONSE_CODE } from '../handle/response-codes.js';
import type { HandleValue } from '../handle/value.js';
import {
  type HandleJson,
  type UpstreamResponse,
  assertHandle,
  headerOf,
  invalidResponse,
  parseMembers,
} from './response.js';

export interface RecordAnswer {
  status: number;
  /** Undefined where a server refuses without Handle JSON: a failed login, or its HTTP container. */
  responseCode: number | undefined;
  members: Record<string, unknown>;
  /** As it came. */
  body: string;
  retryAfter: string | undefined;
  /** `WWW-Authenticate`. */
  challenge: string | undefined;
}

export interface RecordAnswerOptions {
  /** The handle the answer has to be about; undefined for a list. */
  handle: string | undefined;
  caseSensitive: boolean;
}

/** @throws ServiceError UPSTREAM_BAD_ANSWER for a response that no Handle server would give */
export function readAnswer(response: UpstreamResponse, options: RecordAnswerOptions): RecordAnswer {
  const { status, body } = response;
  const { handle, caseSensitive } = options;
  const answer = {
    status,
    body,
    retryAfter: headerOf(response, 'retry-after'),
    challenge: headerOf(response, 'www-authenticate'),
  };
  const members = parseMembersOfAnswer(response);
  if (members === undefined) return { ...answer, responseCode: undefined, members: {} };
  const { responseCode } = members;
  const isGood = status >= 200 && status < 300;
  if (!isConsistent(isGood, responseCode)) {
    throw invalidResponse('the response code contradicts the status', response);
  }
  if (isGood && handle !== undefined) assertHandle(response, members, { handle, caseSensitive });
  return { ...answer, responseCode, members };
}

/** The login filter answers 401 with no body, the container 400, 413 and 414 with a page. */
function parseMembersOfAnswer(response: UpstreamResponse): HandleJson | undefined {
  try {
    return parseMembers(response);
  } catch (error) {
    if (response.status >= 400 && response.status < 500) return undefined;
    throw error;
  }
}

function isConsistent(isGood: boolean, responseCode: number): boolean {
  const { success, valuesNotFound } = RESPONSE_CODE;
  return isGood ? responseCode === success || responseCode === valuesNotFound : responseCode !== success;
}

/** The values of a good answer to a read; undefined when it is a refusal. */
export function readValues({ status, responseCode, members }: RecordAnswer): HandleValue[] | undefined {
  if (status !== 200) return undefined;
  const { values } = members;
  if (responseCode === RESPONSE_CODE.valuesNotFound) return [];
  if (Array.isArray(values) && values.every(isValue)) return values;
  const headers = { 'content-type': 'application/json' };
  throw invalidResponse('a record without a list of values', { status, headers, body: '' });
}

function isValue(value: unknown): value is HandleValue {
  if (typeof value !== 'object' || value === null) return false;
  const { index, type, data, permissions, ttl } = value as Partial<HandleValue>;
  const hasData = typeof data === 'object' && data !== null;
  return (
    Number.isInteger(index) &&
    typeof type === 'string' &&
    hasData &&
    ['string', 'undefined'].includes(typeof permissions) &&
    ['string', 'number', 'undefined'].includes(typeof ttl)
  );
}
