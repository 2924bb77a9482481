// Reads a reply of the Handle server: what it says about the handle, or that it is no answer at all.
import { ServiceError, type UpstreamAnswer } from '../errors.js';
import { foldHandle } from '../handle/handle.js';
import { NestingError, parseJson, sliceMember } from '../handle/json.js';
import type { Outcome } from '../handle/outcome.js';
import { type PublicValues, publicValues } from '../handle/record.js';
import { RESPONSE_CODE } from '../handle/response-codes.js';
import { type HandleValue, isPublic } from '../handle/value.js';
import { badAnswer } from './invalid-response.js';
import { isTooBusy } from './retry-after-pause.js';

/** What came back, and the handle that was asked for. */
export interface Reply {
  status: number;
  headers: Pick<Headers, 'get'>;
  body: string;
  handle: string;
  caseSensitive: boolean;
  /** The rest it asked for and gets. */
  restMs?: number | undefined;
}

type Members = Record<string, unknown> & { responseCode: number };

/**
 * Classifies a reply.
 *
 * @throws ServiceError UPSTREAM_FAILED for a 5xx in Handle JSON, UPSTREAM_BUSY for another 429 or 503
 * (RFC 6585 §4, RFC 9110 §15.6.4: of the server or of a gateway before it), UPSTREAM_BAD_ANSWER for what
 * no Handle server would say
 */
export function readReply(reply: Reply): Outcome {
  const members = parseMembers(reply);
  if (reply.status === 429) throw busy(reply, members);
  switch (members.responseCode) {
    case RESPONSE_CODE.success:
      return readRecord(reply, members);
    case RESPONSE_CODE.handleNotFound:
      return readNotFound(reply, members);
    case RESPONSE_CODE.valuesNotFound:
      // 200 belongs to resolution; with any other status the code is an ordinary refusal.
      return reply.status === 200 ? readEmpty(reply, members) : readRefusal(reply, members);
    default:
      return readRefusal(reply, members);
  }
}

function parseMembers(reply: Reply): Members {
  let parsed: unknown;
  try {
    parsed = parseJson(reply.body);
  } catch (cause) {
    throw noAnswer(cause instanceof NestingError ? cause.message : 'no JSON', reply, cause);
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw noAnswer('no JSON object', reply);
  }
  const members = parsed as Partial<Members>;
  if (!Number.isInteger(members.responseCode)) throw noAnswer('no response code', reply);
  return members as Members;
}

const noAnswer = (reason: string, reply: Reply, cause?: unknown): ServiceError =>
  isTooBusy(reply.status) ? busy(reply) : badAnswer(reason, reply, cause);

function busy(reply: Reply, members?: Members): ServiceError {
  const { status, restMs: retryAfterMs } = reply;
  const upstreamAnswer = members && { upstreamAnswer: ownAnswer(reply, members) };
  return new ServiceError('UPSTREAM_BUSY', { detail: `HTTP ${status}`, retryAfterMs, ...upstreamAnswer });
}

function readRecord(reply: Reply, members: Members): Outcome {
  demandStatus(reply, 200);
  if (members['handle'] === undefined) throw badAnswer('a record without its handle', reply);
  demandHandle(reply, members);
  const { values: parsed } = members;
  if (!Array.isArray(parsed)) throw badAnswer('a record without a list of values', reply);
  const { values, ttls } = readValues(reply, parsed);
  return ttls.length === 0 ? { kind: 'empty' } : { kind: 'found', values, ttls };
}

function readValues(reply: Reply, parsed: readonly unknown[]): PublicValues {
  let kept: PublicValues;
  try {
    kept = publicValues(sliceMember(reply.body, 'values') ?? '[]', parsed);
  } catch (cause) {
    throw badAnswer('a record with something else than values', reply, cause);
  }
  const isTtl = (ttl: unknown): boolean => typeof ttl === 'number' || typeof ttl === 'string';
  if (!kept.ttls.every(isTtl)) throw badAnswer('a value whose ttl is neither number nor date', reply);
  return kept;
}

function readEmpty(reply: Reply, members: Members): Outcome {
  demandHandle(reply, members);
  return { kind: 'empty' };
}

function readNotFound(reply: Reply, members: Members): Outcome {
  demandStatus(reply, 404);
  demandHandle(reply, members);
  const { message } = members;
  return typeof message === 'string' ? { kind: 'not-found', message } : { kind: 'not-found' };
}

function readRefusal(reply: Reply, members: Members): Outcome {
  const { status } = reply;
  const answer = ownAnswer(reply, members);
  // 300 is how a referral is sent (codes 302 and 303); other 3xx would have to be followed.
  if (status === 300 || (status >= 400 && status < 500)) return { kind: 'refused', ...answer };
  if (status >= 500) {
    const detail = `response code ${members.responseCode} (HTTP ${status})`;
    const { restMs: retryAfterMs } = reply;
    throw new ServiceError('UPSTREAM_FAILED', { detail, upstreamAnswer: answer, retryAfterMs });
  }
  throw badAnswer(`response code ${members.responseCode} contradicts the status`, reply);
}

function ownAnswer({ status, headers }: Reply, { handle, ...members }: Members): UpstreamAnswer {
  if (Array.isArray(members['values'])) members['values'] = members['values'].filter(isShowable);
  const retryAfter = headers.get('retry-after');
  const answer = { status, members, namesHandle: handle !== undefined };
  return retryAfter === null ? answer : { ...answer, retryAfter };
}

/** Referrals carry values too. What cannot be judged is not shown. */
function isShowable(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const { permissions } = value as Partial<HandleValue>;
  if (permissions === undefined) return true;
  return typeof permissions === 'string' && isPublic({ permissions });
}

function demandStatus(reply: Reply, status: number): void {
  if (reply.status !== status) throw badAnswer('the response code contradicts the status', reply);
}

/** An answer about another handle would be kept under the wrong key. */
function demandHandle(reply: Reply, { handle }: Members): void {
  if (handle === undefined) return;
  const fold = (text: string): string => foldHandle(text, reply.caseSensitive);
  if (typeof handle !== 'string' || fold(handle) !== fold(reply.handle)) {
    throw badAnswer('an answer about another handle', reply);
  }
}
