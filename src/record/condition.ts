// The ETag of a record as the caller sees it, and the preconditions of writes (`If-Match`, `If-None-Match`).
import type { IncomingMessage } from 'node:http';
import type { RecordContent } from '../cache/entry.js';
import { ServiceError } from '../errors.js';
import type { Bytes } from '../handle/bytes.js';
import { extractObject, parseJsonInSteps, sliceValues } from '../handle/json.js';
import { RESPONSE_CODE } from '../handle/outcome.js';
import { type Selection, publicValues } from '../handle/value.js';
import { type ConditionHeaders, evaluatePreconditions, weakTagProblem } from '../http/preconditions.js';
import { type Encoding, type RecordForm, recordEtag } from '../http/reply.js';
import { selectJson } from '../resolver/parsed-records.js';
import type { Steps } from '../time-slicer.js';
import type { RecordRead } from '../upstream/contract.js';

interface Members {
  responseCode?: unknown;
  values?: unknown;
}

/** Computes the ETag of a 200 response, including JSONP, in steps; undefined if it contains no record. */
export function* etagOfResponse(
  body: Buffer,
  form: RecordForm,
  encoding: Encoding,
): Steps<string | undefined> {
  let record: RecordContent | undefined;
  try {
    const json = extractObject(body.toString());
    record = yield* recordOf(json, (yield* parseJsonInSteps(json)) as Members);
  } catch {
    return undefined;
  }
  return record && (yield* recordEtag(record, form, encoding));
}

/** Reads the record of a 200 response with its parsed members. @throws TypeError for a value without index or type */
function* recordOf(json: string, { responseCode, values }: Members): Steps<RecordContent | undefined> {
  if (responseCode === RESPONSE_CODE.valuesNotFound)
    return { kind: 'empty', values: '' as Bytes, message: '' };
  if (responseCode !== RESPONSE_CODE.success || !Array.isArray(values)) return undefined;
  yield;
  const written = sliceValues(json);
  yield;
  const all = yield* publicValues(written, values, true);
  return { kind: 'found', values: all.values, message: '' };
}

/**
 * Whether a write has a condition that this interface evaluates. It ignores `If-Unmodified-Since`, because a record has no
 * modification date (RFC 9110 §13.1.4); ePIC v2 refuses such a write.
 */
export const hasEtagCondition = (headers: ConditionHeaders): boolean =>
  headers['if-match'] !== undefined || headers['if-none-match'] !== undefined;

interface WriteCondition {
  req: IncomingMessage;
  /** The handle as spelled by the caller. */
  handle: string;
  /** As in the query. */
  indexes: readonly string[];
}

/**
 * Checks the precondition of a write, in steps, against the record as its caller currently sees it.
 *
 * @throws ServiceError PRECONDITION_FAILED, BAD_REQUEST for a malformed header, UPSTREAM_FAILED if the Handle
 * server does not return the record
 */
export function* assertCondition(condition: WriteCondition, response: RecordRead): Steps<void> {
  const { headers } = condition.req;
  const selection = writtenSelection(condition.indexes);
  const record = yield* shownRecord(response);
  const exists = record !== undefined && (yield* isSelected(record, selection));
  if (yield* holdsFor(condition, exists ? record : undefined, selection)) return;
  // The ETag may also cover the whole record, even before the value exists; `*` covers only the selection.
  const isOfValues = selection.indexes.length > 0 && namesTags(headers['if-match']);
  if (isOfValues && (yield* holdsFor(condition, record, WHOLE))) return;
  throw new ServiceError('PRECONDITION_FAILED', {
    detail: exists ? (weakTagProblem(headers) ?? 'the record has changed') : 'the record does not exist',
  });
}

/** Returns the values that the write names; empty for all, and for `?index=various`, whose values are in the body. */
function writtenSelection(indexes: readonly string[]): Selection {
  return { indexes: indexes.every((index) => /^\d+$/.test(index)) ? indexes.map(Number) : [], types: [] };
}

const WHOLE: Selection = { indexes: [], types: [] };

const namesTags = (header: string | undefined): boolean => header !== undefined && header.trim() !== '*';

function* shownRecord(response: RecordRead): Steps<RecordContent | undefined> {
  const { responseCode, body, members, values } = response;
  if (responseCode === RESPONSE_CODE.handleNotFound) return undefined;
  const record = values && (yield* recordOf(body, members));
  if (record === undefined) throw refusedRead(response);
  return record;
}

/** Converts a refusal to an error. That of a wrong login has no Handle JSON (recording "create: wrong password"). */
function refusedRead({ status, responseCode, members, retryAfter, challenge }: RecordRead): ServiceError {
  const { handle, ...others } = members;
  return new ServiceError('UPSTREAM_FAILED', {
    detail: 'it did not return the record',
    upstreamAnswer: {
      status,
      members: responseCode === undefined ? { responseCode: RESPONSE_CODE.authenticationFailed } : others,
      namesHandle: handle !== undefined,
      retryAfter,
      challenge,
    },
  });
}

/** Whether the record has a selected value; true for a write of the whole record. */
function* isSelected(record: RecordContent, selection: Selection): Steps<boolean> {
  if (selection.indexes.length === 0) return true;
  return (yield* selectJson(record, selection)) !== undefined;
}

/** Accepts the ETag of the compact or of the indented response. The indented response is rendered only if needed. */
function* holdsFor(
  { req: { method = '', headers }, handle }: WriteCondition,
  record: RecordContent | undefined,
  selection: Selection,
): Steps<boolean> {
  // The conditions that `hasEtagCondition` finds.
  const conditions = { 'if-match': headers['if-match'], 'if-none-match': headers['if-none-match'] };
  const etags: string[] = [];
  const holds = (): boolean =>
    evaluatePreconditions(conditions, { method, exists: record !== undefined, etags }) !== 'failed';
  const excludesTags = namesTags(headers['if-none-match']);
  if (record === undefined || !(excludesTags || namesTags(headers['if-match']))) return holds();
  for (const pretty of [false, true]) {
    const form = { handle, selection, format: { pretty } };
    etags.push(yield* recordEtag(record, form, 'identity'));
    if (!excludesTags && holds()) return true;
  }
  return holds();
}
