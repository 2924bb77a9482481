// What a refusal of the Handle server is in ePIC v2 (api-facts: upstream answer to v2 status).
import { type ErrorCode, ServiceError } from '../errors.js';
import { RESPONSE_CODE } from '../handle/response-codes.js';
import type { RecordAnswer } from '../upstream/record-answer.js';

type Refusing = Omit<RecordAnswer, 'body' | 'challenge'>;

type Refusal = [code: ErrorCode, detail?: string];

const WRONG_LOGIN: Refusal = ['V2_LOGIN_NEEDED', 'the Handle server does not accept this name and password'];

const FORBIDDEN: Refusal = ['V2_FORBIDDEN', 'its HS_ADMIN values do not give you the right to'];

/** By response code: what a server says of the caller, of the handle and of itself. */
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

/** The error that says in v2 what the server refused. A 401 is the caller's, whose password it is. */
export function refusalOf(answer: Refusing, asked: 'read' | 'write'): ServiceError {
  const [code, detail] = classify(answer, asked);
  const said = answer.members['message'];
  const quote = typeof said === 'string' ? `the Handle server says: ${said}` : undefined;
  return new ServiceError(code, {
    ...withDetail([detail, quote].filter((text) => text !== undefined).join('; ')),
    // Clients of Handle servers take a 404 with code 100, and no other, for "there is no such handle".
    ...(code === 'V2_NOT_FOUND' && { responseCode: answer.responseCode ?? RESPONSE_CODE.protocolError }),
    ...(answer.retryAfter !== undefined && {
      upstreamAnswer: { ...answer, namesHandle: false, retryAfter: answer.retryAfter },
    }),
  });
}

const withDetail = (detail: string): { detail?: string } => (detail === '' ? {} : { detail });

function classify({ status, responseCode }: Refusing, asked: 'read' | 'write'): Refusal {
  if (status === 401) return WRONG_LOGIN;
  if (responseCode === undefined) return byStatus(status);
  if (responseCode === RESPONSE_CODE.notResponsible) return notResponsible(asked);
  if (responseCode === RESPONSE_CODE.authenticationNeeded) {
    return ['UPSTREAM_FAILED', 'it ignored the login: upstream.url has to be https'];
  }
  const known = BY_RESPONSE_CODE[responseCode];
  return known ?? ['UPSTREAM_FAILED', `response code ${responseCode} (HTTP ${status})`];
}

const notResponsible = (asked: 'read' | 'write'): Refusal =>
  asked === 'read'
    ? ['V2_NOT_FOUND', 'the prefix does not live at the Handle server']
    : ['V2_FORBIDDEN', 'the prefix does not live at the Handle server'];

/** The HTTP container in front of the Handle server has no response codes. */
function byStatus(status: number): Refusal {
  if (status === 403) return FORBIDDEN;
  if (status === 404) return ['V2_NOT_FOUND'];
  if (status === 413) return ['BODY_TOO_LARGE', 'for the Handle server'];
  if (status === 414) return ['REQUEST_LINE_TOO_LONG', 'for the Handle server'];
  return ['V2_REJECTED', `HTTP ${status}`];
}
