// Reads what a Handle server answered to one caller: its refusals too are answers.
import { foldHandle } from '../handle/handle.js';
import { parseJson } from '../handle/json.js';
import { RESPONSE_CODE } from '../handle/response-codes.js';
import type { HandleValue } from '../handle/value.js';
import { badAnswer } from './invalid-response.js';

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

interface Arrived {
  status: number;
  headers: Pick<Headers, 'get'>;
  body: string;
  /** Whom the answer has to be about; undefined for a list. */
  handle: string | undefined;
  caseSensitive: boolean;
}

/** @throws ServiceError UPSTREAM_BAD_ANSWER for what no Handle server would say */
export function readAnswer(arrived: Arrived): RecordAnswer {
  const { status, headers } = arrived;
  const { body } = arrived;
  const said = { status, body, ...headersOf(headers) };
  const members = parseMembers(arrived.body);
  const responseCode = members?.['responseCode'];
  if (members === undefined || typeof responseCode !== 'number') {
    // The login filter answers 401 with no body, the container 400, 413 and 414 with a page.
    if (status >= 400 && status < 500) return { ...said, responseCode: undefined, members: {} };
    throw badAnswer('no Handle JSON', arrived);
  }
  const isGood = status >= 200 && status < 300;
  if (!isConsistent(isGood, responseCode)) {
    throw badAnswer('the response code contradicts the status', arrived);
  }
  if (isGood) demandHandle(arrived, members['handle']);
  return { ...said, responseCode, members };
}

const headersOf = (headers: Pick<Headers, 'get'>): Pick<RecordAnswer, 'retryAfter' | 'challenge'> => ({
  retryAfter: headers.get('retry-after') ?? undefined,
  challenge: headers.get('www-authenticate') ?? undefined,
});

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
  const headers = { get: (): string => 'application/json' };
  throw badAnswer('a record without a list of values', { status, headers, body: '' });
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

function parseMembers(body: string): Record<string, unknown> | undefined {
  try {
    const parsed = parseJson(body);
    const isObject = typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed);
    return isObject ? (parsed as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** Somebody else's record must not be shown, nor be taken for the result of this write. */
function demandHandle(arrived: Arrived, named: unknown): void {
  const { handle, caseSensitive } = arrived;
  if (handle === undefined || named === undefined) return;
  const fold = (text: string): string => foldHandle(text, caseSensitive);
  if (typeof named !== 'string' || fold(named) !== fold(handle)) {
    throw badAnswer('an answer about another handle', arrived);
  }
}
