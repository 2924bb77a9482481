// An ePIC v2 call: the interface that answers it, its caller's login, and its responses: JSON, problem JSON for failures
// (RFC 9457), and v2 errors for Handle server refusals.
import { type IncomingMessage, STATUS_CODES, type ServerResponse } from 'node:http';
import { tryDecode } from '../handle/bytes.js';
import type { Host } from '../host.js';
import type { Config } from '../config/schema.js';
import { type ErrorCode, ServiceError } from '../errors.js';
import type { HandleRef } from '../handle/handle.js';
import { writeJson } from '../handle/json.js';
import { RESPONSE_CODE, isElsewhere } from '../handle/outcome.js';
import { type ValueReference, parseReference, referenceKey } from '../handle/value.js';
import { type Freshness, VARY } from '../http/cache-headers.js';
import { type RequestContext, contextOf } from '../http/context.js';
import { exposeHeaders } from '../http/cors.js';
import { type ErrorReply, type FailedCall, errorHeaders } from '../http/error-reply.js';
import { readBasic } from '../http/identity.js';
import { forbidSniffing } from '../http/raw-response.js';
import type { WithBody } from '../http/request-body.js';
import type { UnsentCount } from '../server/unsent.js';
import type { RunSteps } from '../time-slicer.js';
import type { RecordAnswer } from '../upstream/reply.js';
import type { OriginRecord } from '../write/origin-record.js';
import type { CarryOut } from '../write/write.js';
import type { UnclaimedNames } from './unclaimed-names.js';

/** The parts that only writes use. */
export interface V2Writes {
  withBody: WithBody;
  carryOut: CarryOut;
  /** Minted names whose response was lost, reused for a repeated POST. */
  unclaimed: UnclaimedNames;
}

/** The ePIC v2 interface, which each reload creates. */
export interface V2 extends V2Writes {
  config: Config;
  host: Host;
  /** Identities by the login name that `v2.identities` maps to them. */
  identities: ReadonlyMap<string, string>;
  freshness: Freshness;
  unsent: UnsentCount;
}

/** A request with or without a login. */
export interface V2Request {
  v2: V2;
  req: IncomingMessage;
  res: ServerResponse;
  context: RequestContext;
  /** Processes the records of the request in time slices. */
  run: RunSteps;
}

/** A request with a login. */
export interface V2Call extends V2Request {
  login: Login;
}

/** Returns the record at its Handle server, accessed with the caller's login. */
export const originFor = ({ v2, context, login }: V2Call, handle: HandleRef): OriginRecord =>
  v2.host.originOf(handle, {
    caller: context.caller,
    authorization: login.authorization,
    identity: login.identityKey,
  });

/** HTTP Basic credentials with a handle identity, or with a name that `v2.identities` maps to an identity. */
interface Login {
  identity: ValueReference;
  /** The identity in a spelling that equal identities share. */
  identityKey: string;
  /** Header for the Handle server, which alone verifies the password. */
  authorization: string;
}

/** Parses the login. @throws ServiceError V2_LOGIN_NEEDED with advice on how to log in */
export function readV2Login(
  authorization: string | undefined,
  identities: ReadonlyMap<string, string>,
): Login {
  const basic = readBasic(authorization);
  if (authorization === undefined || basic === undefined) throw loginNeeded('log in with HTTP Basic');
  const { name, password } = basic;
  if (password === undefined) throw loginNeeded('there is no colon between name and password');
  const mapped = identities.get(name);
  const decoded = mapped ?? tryDecode(decodeURIComponent, name) ?? name;
  if (mapped === undefined && !decoded.includes('/'))
    throw loginNeeded(
      `the user name ${JSON.stringify(name)} is neither an identity such as 300%3A21.T1%2FUSER ` +
        '(colon and slash percent-encoded) nor one of the names configured in v2.identities',
    );
  const identity = parseReference(decoded);
  return {
    identity,
    identityKey: referenceKey(identity, false),
    authorization: mapped === undefined ? authorization : basicOf(mapped, password),
  };
}

const basicOf = (identity: string, password: Buffer): string =>
  `Basic ${Buffer.concat([Buffer.from(`${encodeURIComponent(identity)}:`), password]).toString('base64')}`;

const loginNeeded = (detail: string): ServiceError => new ServiceError('V2_LOGIN_NEEDED', { detail });

interface Payload {
  status: number;
  headers: Record<string, string>;
  /** Set if and only if `body` is set. */
  contentType?: string;
  /** The text, or the parts of a long one. */
  body?: string | readonly Buffer[];
}

export function sendV2(res: ServerResponse, { status, headers, contentType, body }: Payload): void {
  res.statusCode = status;
  res.setHeaders(new Map(Object.entries({ ...headers, Vary: VARY })));
  const parts = typeof body === 'string' ? [Buffer.from(body)] : (body ?? []);
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  if (contentType !== undefined) res.setHeader('Content-Type', contentType);
  // 204 and 304 have no Content-Length (RFC 9110 §8.6).
  if (status !== 204 && status !== 304) res.setHeader('Content-Length', String(length));
  forbidSniffing(res);
  exposeHeaders(res);
  for (const part of parts.slice(0, -1)) res.write(part);
  res.end(parts.at(-1));
}

/** The realm of a Handle server, so that a browser sends the login that it remembers. */
const CHALLENGE = 'Basic realm="handle"';

export function renderV2Problem(error: ServiceError, { res, handle, requestId }: FailedCall): ErrorReply {
  const failure = asRefusal(error);
  contextOf(res).failure = failure;
  const status = statusOf(failure);
  // The connection closes, because the rest of an oversized body is not read.
  if (status === 413) res.setHeader('Connection', 'close');
  const { message: detail, code, responseCode } = failure;
  const title = STATUS_CODES[status] ?? 'Error';
  const problem = { type: 'about:blank', title, status, detail, code, responseCode };
  return {
    status,
    contentType: 'application/problem+json',
    text: writeJson(handle === undefined ? problem : { ...problem, handle }),
    headers: {
      ...(status === 401 && { 'WWW-Authenticate': CHALLENGE }),
      ...errorHeaders(failure, requestId),
    },
  };
}

/** Refuses an unconfigured prefix like a server that does not hold the prefix. */
const asRefusal = (failure: ServiceError): ServiceError =>
  failure.code === 'NOT_RESPONSIBLE' ? new ServiceError('V2_FORBIDDEN', { detail: ELSEWHERE }) : failure;

/** Passes the Handle server's 501 and 503 through. */
const statusOf = ({ upstreamAnswer, status }: ServiceError): number =>
  upstreamAnswer?.status === 501 || upstreamAnswer?.status === 503 ? upstreamAnswer.status : status;

type RefusedAnswer = Omit<RecordAnswer, 'body' | 'challenge'>;

type Refusal = [code: ErrorCode, detail?: string];

const WRONG_LOGIN: Refusal = ['V2_LOGIN_NEEDED', 'the Handle server does not accept this name and password'];

const FORBIDDEN: Refusal = [
  'V2_FORBIDDEN',
  'no HS_ADMIN value of the record grants you the required permission',
];

const BY_RESPONSE_CODE: Readonly<Record<number, Refusal>> = {
  [RESPONSE_CODE.serverBusy]: ['UPSTREAM_BUSY'],
  [RESPONSE_CODE.operationNotSupported]: ['V2_NOT_SUPPORTED', 'the Handle server does not support it'],
  [RESPONSE_CODE.serverReadOnly]: ['UPSTREAM_BUSY'],
  [RESPONSE_CODE.handleNotFound]: ['V2_NOT_FOUND'],
  [RESPONSE_CODE.handleExists]: ['PRECONDITION_FAILED', 'the handle exists already'],
  [RESPONSE_CODE.invalidHandle]: ['V2_REJECTED'],
  [RESPONSE_CODE.protocolError]: ['V2_REJECTED'],
  [RESPONSE_CODE.valueExists]: ['V2_INDEX_TAKEN', 'give another idx'],
  [RESPONSE_CODE.invalidValue]: ['V2_REJECTED'],
  [RESPONSE_CODE.invalidAdmin]: FORBIDDEN,
  [RESPONSE_CODE.insufficientPermissions]: FORBIDDEN,
  [RESPONSE_CODE.authenticationFailed]: WRONG_LOGIN,
};

const ELSEWHERE = 'the Handle server does not serve this prefix';

export function refusalError(answer: RefusedAnswer, operation: 'read' | 'write'): ServiceError {
  const [code, detail] = classifyRefusal(answer, operation);
  const { message } = answer.members;
  const quote = typeof message === 'string' ? `the Handle server says: ${message}` : undefined;
  const text = [detail, quote].filter((part) => part !== undefined).join('; ');
  return new ServiceError(code, {
    detail: text === '' ? undefined : text,
    // Clients treat a handle as nonexistent only for a 404 with response code 100.
    ...(code === 'V2_NOT_FOUND' && { responseCode: answer.responseCode ?? RESPONSE_CODE.protocolError }),
    upstreamAnswer: answer.retryAfter === undefined ? undefined : { ...answer, namesHandle: false },
  });
}

function classifyRefusal({ status, responseCode }: RefusedAnswer, operation: 'read' | 'write'): Refusal {
  if (status === 401) return WRONG_LOGIN;
  if (responseCode === undefined) return classifyStatus(status);
  if (isElsewhere(responseCode)) return [operation === 'read' ? 'V2_NOT_FOUND' : 'V2_FORBIDDEN', ELSEWHERE];
  if (responseCode === RESPONSE_CODE.authenticationNeeded)
    return ['UPSTREAM_FAILED', 'it ignored the login: upstream.url has to be https'];
  const known = BY_RESPONSE_CODE[responseCode];
  return known ?? ['UPSTREAM_FAILED', `response code ${responseCode} (HTTP ${status})`];
}

/** Classifies refusals from the server's HTTP container, which sends no response codes. */
function classifyStatus(status: number): Refusal {
  if (status === 403) return FORBIDDEN;
  if (status === 404) return ['V2_NOT_FOUND'];
  if (status === 413) return ['BODY_TOO_LARGE', 'rejected by the Handle server'];
  if (status === 414) return ['REQUEST_LINE_TOO_LONG', 'rejected by the Handle server'];
  return ['V2_REJECTED', `HTTP ${status}`];
}
