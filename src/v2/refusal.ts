// What a refusal of the Handle server means in ePIC v2 (table in README.md).
import { type ErrorCode, ServiceError } from '../errors.js';
import { RESPONSE_CODE, isElsewhere } from '../handle/response-codes.js';
import type { RecordAnswer } from '../upstream/reply.js';

type RefusedAnswer = Omit<RecordAnswer, 'body' | 'challenge'>;

type Refusal = [code: ErrorCode, detail?: string];

const WRONG_LOGIN: Refusal = ['V2_LOGIN_NEEDED', 'the Handle server does not accept this name and password'];

const FORBIDDEN: Refusal = ['V2_FORBIDDEN', 'no HS_ADMIN value of the record gives you the right to it'];

const BY_RESPONSE_CODE: Readonly<Record<number, Refusal>> = {
  [RESPONSE_CODE.serverBusy]: ['UPSTREAM_BUSY'],
  [RESPONSE_CODE.operationNotSupported]: ['V2_NOT_SUPPORTED', 'the Handle server does not offer it'],
  [RESPONSE_CODE.serverReadOnly]: ['UPSTREAM_BUSY'],
  [RESPONSE_CODE.handleNotFound]: ['V2_NOT_FOUND'],
  [RESPONSE_CODE.handleExists]: ['CONDITION_FAILED', 'the handle exists already'],
  [RESPONSE_CODE.invalidHandle]: ['V2_REJECTED'],
  [RESPONSE_CODE.protocolError]: ['V2_REJECTED'],
  [RESPONSE_CODE.valueExists]: ['V2_INDEX_TAKEN', 'give another idx'],
  [RESPONSE_CODE.invalidValue]: ['V2_REJECTED'],
  [RESPONSE_CODE.invalidAdmin]: FORBIDDEN,
  [RESPONSE_CODE.insufficientPermissions]: FORBIDDEN,
  [RESPONSE_CODE.authenticationFailed]: WRONG_LOGIN,
};

const ELSEWHERE = 'the Handle server does not serve this prefix';

/** Rejects a write under a prefix of no configured server as a server that does not have the prefix would. */
export function rejectAsServer(failure: unknown): never {
  if (!(failure instanceof ServiceError) || failure.code !== 'NOT_RESPONSIBLE') throw failure;
  throw new ServiceError('V2_FORBIDDEN', { detail: ELSEWHERE });
}

/** The v2 error for a refusal of the Handle server. */
export function refusalError(answer: RefusedAnswer, operation: 'read' | 'write'): ServiceError {
  const [code, detail] = classifyRefusal(answer, operation);
  const { message } = answer.members;
  const quote = typeof message === 'string' ? `the Handle server says: ${message}` : undefined;
  const text = [detail, quote].filter((part) => part !== undefined).join('; ');
  return new ServiceError(code, {
    ...(text !== '' && { detail: text }),
    // For clients, only a 404 with response code 100 means that the handle does not exist.
    ...(code === 'V2_NOT_FOUND' && { responseCode: answer.responseCode ?? RESPONSE_CODE.protocolError }),
    ...(answer.retryAfter !== undefined && {
      upstreamAnswer: { ...answer, namesHandle: false, retryAfter: answer.retryAfter },
    }),
  });
}

function classifyRefusal({ status, responseCode }: RefusedAnswer, operation: 'read' | 'write'): Refusal {
  if (status === 401) return WRONG_LOGIN;
  if (responseCode === undefined) return classifyStatus(status);
  if (isElsewhere(responseCode)) return [operation === 'read' ? 'V2_NOT_FOUND' : 'V2_FORBIDDEN', ELSEWHERE];
  if (responseCode === RESPONSE_CODE.authenticationNeeded) {
    return ['UPSTREAM_FAILED', 'it ignored the login: upstream.url has to be https'];
  }
  const known = BY_RESPONSE_CODE[responseCode];
  return known ?? ['UPSTREAM_FAILED', `response code ${responseCode} (HTTP ${status})`];
}

/** The HTTP container of the Handle server sends no response codes. */
function classifyStatus(status: number): Refusal {
  if (status === 403) return FORBIDDEN;
  if (status === 404) return ['V2_NOT_FOUND'];
  if (status === 413) return ['BODY_TOO_LARGE', 'the Handle server rejects it'];
  if (status === 414) return ['REQUEST_LINE_TOO_LONG', 'the Handle server rejects it'];
  return ['V2_REJECTED', `HTTP ${status}`];
}
