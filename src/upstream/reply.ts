// Turns a reply of the Handle server into an outcome for the handle, or into an error.
import { ServiceError, type UpstreamAnswer } from '../errors.js';
import { sliceMember } from '../handle/json.js';
import type { Outcome } from '../handle/outcome.js';
import { type PublicValues, publicValues, type HandleValue, isPublic } from '../handle/value.js';
import { RESPONSE_CODE } from '../handle/response-codes.js';
import {
  type HandleJson,
  type UpstreamResponse,
  assertHandle,
  headerOf,
  invalidResponse,
  parseMembers,
} from './response.js';
import { isTooBusy } from './retry-after-pause.js';

/** A response, and the handle that was requested. */
export interface UpstreamReply extends UpstreamResponse {
  handle: string;
  caseSensitive: boolean;
  /** The pause that the server requested with Retry-After (ms). */
  pauseMs?: number | undefined;
}

/**
 * Classifies a reply.
 *
 * @throws ServiceError UPSTREAM_FAILED for a 5xx in Handle JSON, UPSTREAM_BUSY for another 429 or 503
 * (RFC 6585 §4, RFC 9110 §15.6.4: of the server or of a gateway before it), UPSTREAM_BAD_ANSWER for a reply
 * that no Handle server would give
 */
export function readReply(reply: UpstreamReply): Outcome {
  const members = parseReply(reply);
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

/** A body that is not Handle JSON on 429 or 503 comes from a gateway, and still means that the server is too busy. */
function parseReply(reply: UpstreamReply): HandleJson {
  try {
    return parseMembers(reply);
  } catch (error) {
    throw isTooBusy(reply.status) ? busy(reply) : error;
  }
}

function busy(reply: UpstreamReply, members?: HandleJson): ServiceError {
  const { status, pauseMs: retryAfterMs } = reply;
  const upstreamAnswer = members && { upstreamAnswer: ownAnswer(reply, members) };
  return new ServiceError('UPSTREAM_BUSY', { detail: `HTTP ${status}`, retryAfterMs, ...upstreamAnswer });
}

function readRecord(reply: UpstreamReply, members: HandleJson): Outcome {
  assertStatus(reply, 200);
  if (members['handle'] === undefined) throw invalidResponse('a record without its handle', reply);
  assertHandle(reply, members, reply);
  const { values: parsed } = members;
  if (!Array.isArray(parsed)) throw invalidResponse('a record without a list of values', reply);
  const { values, ttls } = readValues(reply, parsed);
  return ttls.length === 0 ? { kind: 'empty' } : { kind: 'found', values, ttls };
}

function readValues(reply: UpstreamReply, parsed: readonly unknown[]): PublicValues {
  let kept: PublicValues;
  try {
    kept = publicValues(sliceMember(reply.body, 'values') ?? '[]', parsed);
  } catch (cause) {
    throw invalidResponse('a record with something else than values', reply, cause);
  }
  const isTtl = (ttl: unknown): boolean => typeof ttl === 'number' || typeof ttl === 'string';
  if (!kept.ttls.every(isTtl)) throw invalidResponse('a value whose ttl is neither number nor date', reply);
  return kept;
}

function readEmpty(reply: UpstreamReply, members: HandleJson): Outcome {
  assertHandle(reply, members, reply);
  return { kind: 'empty' };
}

function readNotFound(reply: UpstreamReply, members: HandleJson): Outcome {
  assertStatus(reply, 404);
  assertHandle(reply, members, reply);
  const { message } = members;
  return typeof message === 'string' ? { kind: 'not-found', message } : { kind: 'not-found' };
}

function readRefusal(reply: UpstreamReply, members: HandleJson): Outcome {
  const { status } = reply;
  const answer = ownAnswer(reply, members);
  // 300 is how a referral is sent (codes 302 and 303); other 3xx would have to be followed.
  if (status === 300 || (status >= 400 && status < 500)) return { kind: 'refused', ...answer };
  if (status >= 500) {
    const detail = `response code ${members.responseCode} (HTTP ${status})`;
    const { pauseMs: retryAfterMs } = reply;
    throw new ServiceError('UPSTREAM_FAILED', { detail, upstreamAnswer: answer, retryAfterMs });
  }
  throw invalidResponse(`response code ${members.responseCode} contradicts the status`, reply);
}

function ownAnswer(reply: UpstreamReply, { handle, ...members }: HandleJson): UpstreamAnswer {
  if (Array.isArray(members['values'])) members['values'] = members['values'].filter(isShowable);
  const retryAfter = headerOf(reply, 'retry-after');
  const answer = { status: reply.status, members, namesHandle: handle !== undefined };
  return retryAfter === undefined ? answer : { ...answer, retryAfter };
}

/** Referrals carry values too. What cannot be judged is not shown. */
function isShowable(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const { permissions } = value as Partial<HandleValue>;
  if (permissions === undefined) return true;
  return typeof permissions === 'string' && isPublic({ permissions });
}

function assertStatus(reply: UpstreamReply, status: number): void {
  if (reply.status !== status) throw invalidResponse('the response code contradicts the status', reply);
}
