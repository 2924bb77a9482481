// Interprets Handle server responses: as a shared outcome, or as a response to one caller.
import { ServiceError, type UpstreamAnswer } from '../errors.js';
import { sliceValues } from '../handle/json.js';
import { type Outcome, RESPONSE_CODE } from '../handle/outcome.js';
import {
  type HandleValue,
  type PublicValues,
  isCompleteValue,
  isPublic,
  publicValues,
} from '../handle/value.js';
import {
  type HandleJson,
  type UpstreamResponse,
  assertHandle,
  describeResponse,
  headerOf,
  invalidResponse,
  isTooBusy,
  NO_HANDLE_SERVER,
  parseList,
  parseMembersInSteps,
} from './response.js';
import { SMALL_CHARS, type Steps, type TimeSlicer, type Work, runToEnd } from '../time-slicer.js';
import type { Caller } from './caller.js';

/** The request that a response must match. */
interface Requested {
  /** Expected handle; undefined for a list. */
  handle: string | undefined;
  caseSensitive: boolean;
}

/** A response to a shared read. */
export interface UpstreamReply extends UpstreamResponse, Requested {
  handle: string;
  /** Pause requested by Retry-After (ms). */
  pauseMs?: number | undefined;
}

/** A response to one caller, possibly a refusal. */
export interface CallerAnswer {
  status: number;
  /** Undefined for a refusal without Handle JSON, from the login filter or the HTTP container. */
  responseCode: number | undefined;
  members: Record<string, unknown>;
  retryAfter: string | undefined;
  /** Value of `WWW-Authenticate`. */
  challenge: string | undefined;
}

export interface RecordAnswer extends CallerAnswer {
  /** Unchanged response text. */
  body: string;
}

/** A list of handles, or a refusal. */
export interface ListAnswer extends CallerAnswer {
  /** The listed handles, which are not in `members`; undefined for a refusal. */
  handles?: readonly string[];
}

/** Creates the response that a Handle server would send with these members, for a request answered without one. */
export const answerWith = (
  status: number,
  members: Record<string, unknown> & { responseCode: number },
): RecordAnswer => ({
  status,
  responseCode: members.responseCode,
  members,
  body: JSON.stringify(members),
  retryAfter: undefined,
  challenge: undefined,
});

/** Processes a long response in time slices, charged to the waiting client; a refresh has no client. */
export const readInSlices = <T>(
  slicer: TimeSlicer,
  reading: Work<T>,
  { chars, caller }: { chars: number; caller: Caller | undefined },
): T | Promise<T> =>
  chars <= SMALL_CHARS ? runToEnd(reading) : slicer.run(reading, { client: caller?.client ?? 'background' });

/** Interprets the response to one caller, in steps. @throws ServiceError UPSTREAM_INVALID_RESPONSE */
export function* readAnswer(response: UpstreamResponse, requested: Requested): Steps<RecordAnswer> {
  const { status, body } = response;
  const retryAfter = headerOf(response, 'retry-after');
  const answer = { status, body, retryAfter, challenge: headerOf(response, 'www-authenticate') };
  let members: HandleJson;
  try {
    members = yield* parseMembersInSteps(response);
  } catch (error) {
    // The login filter sends 401 without a body; the HTTP container sends 400, 413 and 414 with an HTML page.
    if (status < 400 || status >= 500) throw error;
    return { ...answer, responseCode: undefined, members: {} };
  }
  assertConsistent(response, members, requested);
  return { ...answer, responseCode: members.responseCode, members };
}

/** Interprets a list, in steps. @throws ServiceError UPSTREAM_INVALID_RESPONSE */
export function* readListAnswer(response: UpstreamResponse): Steps<ListAnswer> {
  const requested = { handle: undefined, caseSensitive: false };
  if (response.status !== 200) return yield* readAnswer(response, requested);
  const { texts, rest } = yield* parseList(response, NO_HANDLE_SERVER);
  const { members, ...answer } = yield* readAnswer({ ...response, body: rest }, requested);
  const { handles, ...others } = members;
  if (Array.isArray(handles) && handles.length === 0) return { ...answer, members: others, handles: texts };
  throw invalidResponse('a list without handles', response);
}

/** Returns the values in a read response; undefined for a refusal. @throws ServiceError UPSTREAM_INVALID_RESPONSE */
export function allValuesIn({ status, responseCode, members }: RecordAnswer): HandleValue[] | undefined {
  if (status >= 300) return undefined;
  const headers = { 'content-type': 'application/json' };
  // As for a shared read: relayed as a refusal, such a status would report the success of a write that was not sent.
  if (status !== 200) throw contradiction({ status, headers, body: '' }, responseCode);
  const { values } = members;
  if (responseCode === RESPONSE_CODE.valuesNotFound) return [];
  if (Array.isArray(values) && values.every(isCompleteValue)) return values;
  throw invalidResponse('a record without a list of values', { status, headers, body: '' });
}

/**
 * Interprets the response to a shared read.
 *
 * @throws ServiceError UPSTREAM_FAILED for a 5xx in Handle JSON; UPSTREAM_BUSY for a 429, or a 503 without
 * Handle JSON (RFC 6585 §4, RFC 9110 §15.6.4); UPSTREAM_INVALID_RESPONSE for an invalid response
 */
export function* readOutcome(reply: UpstreamReply): Steps<Outcome> {
  const members = yield* parseReply(reply);
  yield;
  const { status } = reply;
  if (status === 429) throw tooBusy(reply, members);
  assertConsistent(reply, members, reply);
  const { success, handleNotFound, valuesNotFound } = RESPONSE_CODE;
  const { responseCode, message } = members;
  if (responseCode === success) return yield* readRecord(reply, members);
  // Only resolution sends this code with 200. With any other status it is an ordinary refusal.
  if (responseCode === valuesNotFound && status === 200) return { kind: 'empty' };
  if (responseCode !== handleNotFound) return readRefusal(reply, members);
  if (status !== 404) throw contradiction(reply, responseCode);
  assertHandle(reply, members, reply);
  return typeof message === 'string' ? { kind: 'not-found', message } : { kind: 'not-found' };
}

/** Asserts that the status and response code agree, and that the record belongs to the requested handle. */
function assertConsistent(
  response: UpstreamResponse,
  members: HandleJson,
  { handle, caseSensitive }: Requested,
): void {
  const { responseCode } = members;
  const { success, valuesNotFound } = RESPONSE_CODE;
  const isGood = response.status >= 200 && response.status < 300;
  const agrees = isGood
    ? responseCode === success || responseCode === valuesNotFound
    : responseCode !== success;
  if (!agrees) throw contradiction(response, responseCode);
  if (isGood && handle !== undefined) assertHandle(response, members, { handle, caseSensitive });
}

const contradiction = (response: UpstreamResponse, responseCode: number | undefined): ServiceError =>
  invalidResponse(`response code ${responseCode} contradicts the status`, response);

/** Parses Handle JSON. A 429 or 503 without it comes from a gateway and still signals a busy server. */
function* parseReply(reply: UpstreamReply): Steps<HandleJson> {
  try {
    return yield* parseMembersInSteps(reply);
  } catch (error) {
    throw isTooBusy(reply.status) ? tooBusy(reply) : error;
  }
}

export function tooBusy(reply: UpstreamReply, members?: HandleJson): ServiceError {
  const { status, pauseMs: retryAfterMs } = reply;
  const remedy =
    status === 429
      ? 'lower upstream.concurrency'
      : 'see the log of the server, or of the gateway in front of it';
  return new ServiceError('UPSTREAM_BUSY', {
    detail: `HTTP ${status}`,
    diagnosis: { cause: `the server is busy or read-only (${describeResponse(reply)})`, remedy },
    retryAfterMs,
    upstreamAnswer: members && ownAnswer(reply, members),
  });
}

function* readRecord(reply: UpstreamReply, members: HandleJson): Steps<Outcome> {
  if (reply.status !== 200) throw contradiction(reply, members.responseCode);
  if (members['handle'] === undefined) throw invalidResponse('a record without its handle', reply);
  const { values: parsed } = members;
  if (!Array.isArray(parsed)) throw invalidResponse('a record without a list of values', reply);
  const kept = yield* readPublicValues(reply, parsed);
  return kept.ttls.length === 0 ? { kind: 'empty' } : { kind: 'found', ...kept };
}

function* readPublicValues(reply: UpstreamReply, parsed: readonly unknown[]): Steps<PublicValues> {
  let kept: PublicValues;
  try {
    kept = yield* publicValues(sliceValues(reply.body), parsed);
  } catch (cause) {
    throw invalidResponse('a record with something other than values', reply, { cause });
  }
  for (const ttl of kept.ttls as unknown[])
    if (typeof ttl !== 'number' && typeof ttl !== 'string')
      throw invalidResponse('a value whose ttl is neither number nor date', reply);
  return kept;
}

function readRefusal(reply: UpstreamReply, members: HandleJson): Outcome {
  const { status } = reply;
  const answer = ownAnswer(reply, members);
  // Handle servers send referrals (codes 302 and 303) with 300. Any other 3xx is an HTTP redirect.
  if (status === 300 || (status >= 400 && status < 500)) return { kind: 'refused', ...answer };
  if (status >= 500) {
    const detail = `response code ${members.responseCode} (HTTP ${status})`;
    const { pauseMs: retryAfterMs } = reply;
    throw new ServiceError('UPSTREAM_FAILED', { detail, upstreamAnswer: answer, retryAfterMs });
  }
  throw contradiction(reply, members.responseCode);
}

function ownAnswer(reply: UpstreamReply, { handle, ...members }: HandleJson): UpstreamAnswer {
  if (Array.isArray(members['values'])) members['values'] = members['values'].filter(isShowable);
  const retryAfter = headerOf(reply, 'retry-after');
  return { status: reply.status, members, namesHandle: handle !== undefined, retryAfter };
}

/** Whether a value in a refusal, such as a referral, is public. Malformed values count as private. */
function isShowable(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const { permissions } = value as Partial<HandleValue>;
  if (permissions === undefined) return true;
  return typeof permissions === 'string' && isPublic({ permissions });
}
