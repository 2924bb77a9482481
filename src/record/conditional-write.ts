// `If-Match` and `If-None-Match` of PUT and DELETE on the record interface, under the lock of the handle.
import type { IncomingHttpHeaders } from 'node:http';
import type { Request } from 'express';
import type { HandleLock } from '../coordination/key-lock.js';
import { ServiceError } from '../errors.js';
import { type Selection, createValueFilter } from '../handle/value.js';
import { RESPONSE_CODE } from '../handle/response-codes.js';
import type { RecordContent } from '../http/body.js';
import { evaluatePreconditions, isCreateOnly } from '../http/preconditions.js';
import { readParameters } from '../http/query.js';
import type { RunSteps } from '../http/request-work.js';
import { valuesOf } from '../resolver/parsed-records.js';
import type { Steps } from '../time-slicer.js';
import { type RecordClient, type RecordRead, readVisible } from '../upstream/record-client.js';
import { recordEtag, recordOf } from './record-etag.js';

export interface ConditionalDeps {
  records: Pick<RecordClient, 'get'>;
  lock: HandleLock;
}

interface ConditionalRequest {
  req: Request;
  handle: string;
  query: string;
  runSteps: RunSteps;
}

interface ConditionalWrite<T> {
  /** `beforeSend` throws when the condition may no longer hold. */
  write: (beforeSend?: () => void) => Promise<T>;
  isRefused: (result: T) => boolean;
}

/**
 * Runs the write if its condition holds for the record as this caller sees it now. Without a condition, or when it
 * only creates, it runs at once: then the server itself checks and writes in one step.
 *
 * @throws ServiceError CONDITION_FAILED, BAD_REQUEST, BUSY, NOT_LOCKED; the response of a Handle server that refuses to
 * show the record; what the write throws
 */
export function runIfConditionHolds<T>(
  { records, lock }: ConditionalDeps,
  { req, handle, query, runSteps }: ConditionalRequest,
  { write, isRefused }: ConditionalWrite<T>,
): Promise<T> {
  if (!isConditional(req.headers) || isCreateOnly(req)) return write();
  const { authorization } = req.headers;
  const selection = selectionOf(query);
  const read = async (): Promise<void> => {
    const response = await readVisible(records, handle, { authorization, authoritative: true });
    const states = statesOf(response, { handle, selection });
    assertCondition(req, await runSteps(states, response.body.length));
  };
  return lock(handle, { req, read, work: (_read, assertHeld) => write(assertHeld), isRefused });
}

const isConditional = (headers: IncomingHttpHeaders): boolean =>
  headers['if-match'] !== undefined || headers['if-none-match'] !== undefined;

/** The values of the write; empty: the whole record. So it is for `?index=various`, whose values are in the body. */
function selectionOf(query: string): Selection {
  const indexes = readParameters(query).getAll('index');
  return { indexes: indexes.every((index) => /^\d+$/.test(index)) ? indexes.map(Number) : [], types: [] };
}

interface RecordState {
  exists: boolean;
  /** Of the plain response and of the indented one: the client may have either. */
  etags: string[];
}

interface RecordStates {
  /** Of the values of the write, as a GET with the same indexes shows them. */
  selected: RecordState;
  whole: RecordState;
}

function* statesOf(
  response: RecordRead,
  { handle, selection }: { handle: string; selection: Selection },
): Steps<RecordStates> {
  const none = { exists: false, etags: [] };
  if (response.responseCode === RESPONSE_CODE.handleNotFound) return { selected: none, whole: none };
  const record = response.status === 200 ? yield* recordOf(response.body, response.members) : undefined;
  if (record === undefined) throw refusedRead(response);
  const whole = { exists: true, etags: yield* etagsOf(record, { handle, selection: WHOLE }) };
  if (selection.indexes.length === 0) return { selected: whole, whole };
  const etags = yield* etagsOf(record, { handle, selection });
  return { selected: { exists: hasSelected(record, selection), etags }, whole };
}

const WHOLE: Selection = { indexes: [], types: [] };

function* etagsOf(record: RecordContent, form: { handle: string; selection: Selection }): Steps<string[]> {
  const plain = yield* recordEtag(record, { ...form, format: { pretty: false }, encoding: 'identity' });
  const pretty = yield* recordEtag(record, { ...form, format: { pretty: true }, encoding: 'identity' });
  return [plain, pretty];
}

/** A wrong login is refused without Handle JSON (recording "create: wrong password"). */
function refusedRead({ status, responseCode, members, retryAfter, challenge }: RecordRead): ServiceError {
  const { handle, ...others } = members;
  return new ServiceError('UPSTREAM_FAILED', {
    detail: 'it does not show the record',
    upstreamAnswer: {
      status: status === 200 ? 502 : status,
      members: responseCode === undefined ? { responseCode: RESPONSE_CODE.authenticationFailed } : others,
      namesHandle: handle !== undefined,
      ...(retryAfter !== undefined && { retryAfter }),
      ...(challenge !== undefined && { challenge }),
    },
  });
}

/** Values selected by index exist when one of them does. */
const hasSelected = ({ kind, values }: RecordContent, selection: Selection): boolean =>
  kind === 'found' && valuesOf({ kind, values }).some(createValueFilter(selection));

/** @throws ServiceError CONDITION_FAILED; BAD_REQUEST for a header that is not a list of tags */
function assertCondition({ method, headers }: Request, { selected, whole }: RecordStates): void {
  const conditions = {
    'if-match': withoutCoding(headers['if-match']),
    'if-none-match': withoutCoding(headers['if-none-match']),
  };
  const holdsFor = (state: RecordState): boolean =>
    evaluatePreconditions(conditions, { method, ...state }) !== 'failed';
  // A tag may be that of the whole record, for a value that is not there yet, too; `*` means the values.
  const namesTags = conditions['if-match'] !== undefined && conditions['if-match'].trim() !== '*';
  if (holdsFor(selected) || (namesTags && holdsFor(whole))) return;
  const detail = selected.exists ? 'the record has changed' : 'there is no such record';
  throw new ServiceError('CONDITION_FAILED', { detail });
}

/** The compressed form of a response has a tag of its own (see `etagOf`). */
const withoutCoding = (header: string | undefined): string | undefined => header?.replaceAll('-gz"', '"');
