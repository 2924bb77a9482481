// The ETag of a record as the caller sees it, and the preconditions of writes (`If-Match`, `If-None-Match`).
import type { IncomingMessage } from 'node:http';
import type { RecordContent } from '../cache/entry.js';
import { ServiceError } from '../errors.js';
import type { Bytes } from '../handle/bytes.js';
import { extractObject, parseJson, sliceMember } from '../handle/json.js';
import { RESPONSE_CODE } from '../handle/outcome.js';
import { type Selection, createValueFilter, publicValues } from '../handle/value.js';
import { evaluatePreconditions, weakTagProblem } from '../http/preconditions.js';
import { type Encoding, bodyOfEntry, etagOf, renderText } from '../http/reply.js';
import type { Format } from '../http/target.js';
import { valuesOf } from '../resolver/parsed-records.js';
import type { Steps } from '../time-slicer.js';
import type { RecordRead } from '../upstream/contract.js';

interface Members {
  responseCode?: unknown;
  values?: unknown;
}

/** Parses a 200 response, including JSONP; undefined if it contains no record. */
export function* readForwardedRecord(body: string): Steps<RecordContent | undefined> {
  const json = extractObject(body);
  try {
    const members = parseJson(json) as Members;
    yield;
    return yield* recordOf(json, members);
  } catch {
    return undefined;
  }
}

/**
 * Reads the record from a 200 response and its parsed members. @throws TypeError for a value without index or
 * type
 */
function* recordOf(json: string, { responseCode, values }: Members): Steps<RecordContent | undefined> {
  if (responseCode === RESPONSE_CODE.valuesNotFound)
    return { kind: 'empty', values: '' as Bytes, message: '' };
  if (responseCode !== RESPONSE_CODE.success || !Array.isArray(values)) return undefined;
  const all = yield* publicValues(sliceMember(json, 'values') ?? '[]', values, true);
  return { kind: 'found', values: all.values, message: '' };
}

interface RecordForm {
  /** The handle as spelled by the caller. */
  handle: string;
  selection: Selection;
  format: Format;
  encoding: Encoding;
}

/** Computes the ETag of a record in the given form. */
export function* recordEtag(
  record: RecordContent,
  { handle, selection, format, encoding }: RecordForm,
): Steps<string> {
  const { json } = yield* bodyOfEntry(record, handle, selection);
  const { text } = yield* renderText(json, format);
  return etagOf(text, encoding);
}

/**
 * Checks the precondition of a write against the record as its caller currently sees it. `handle`: as spelled by the
 * caller; `indexes`: as in the query.
 *
 * @throws ServiceError PRECONDITION_FAILED, BAD_REQUEST for a malformed header, UPSTREAM_FAILED if the Handle
 * server does not return the record
 */
export function* assertCondition(
  req: IncomingMessage,
  handle: string,
  indexes: readonly string[],
  response: RecordRead,
): Steps<void> {
  const selection = writtenSelection(indexes);
  const record = yield* shownRecord(response);
  const exists = record !== undefined && isSelected(record, selection);
  if (yield* holdsFor(req, exists ? record : undefined, handle, selection)) return;
  // The ETag may also cover the whole record, even before the value exists; `*` covers only the selection.
  const isOfValues = selection.indexes.length > 0 && namesTags(req.headers['if-match']);
  if (isOfValues && (yield* holdsFor(req, record, handle, WHOLE))) return;
  throw new ServiceError('PRECONDITION_FAILED', {
    detail: exists ? (weakTagProblem(req.headers) ?? 'the record has changed') : 'the record does not exist',
  });
}

/**
 * Returns the values that the write names. The selection is empty for the whole record, and for
 * `?index=various`, whose values are in the body.
 */
function writtenSelection(indexes: readonly string[]): Selection {
  return { indexes: indexes.every((index) => /^\d+$/.test(index)) ? indexes.map(Number) : [], types: [] };
}

const WHOLE: Selection = { indexes: [], types: [] };

const namesTags = (header: string | undefined): boolean => header !== undefined && header.trim() !== '*';

function* shownRecord(response: RecordRead): Steps<RecordContent | undefined> {
  if (response.responseCode === RESPONSE_CODE.handleNotFound) return undefined;
  const record = response.status === 200 ? yield* recordOf(response.body, response.members) : undefined;
  if (record === undefined) throw refusedRead(response);
  return record;
}

/**
 * Converts a refusal to an error. The refusal of a wrong login contains no Handle JSON (recording "create:
 * wrong password").
 */
function refusedRead({ status, responseCode, members, retryAfter, challenge }: RecordRead): ServiceError {
  const { handle, ...others } = members;
  return new ServiceError('UPSTREAM_FAILED', {
    detail: 'it did not return the record',
    upstreamAnswer: {
      status: status === 200 ? 502 : status,
      members: responseCode === undefined ? { responseCode: RESPONSE_CODE.authenticationFailed } : others,
      namesHandle: handle !== undefined,
      ...(retryAfter !== undefined && { retryAfter }),
      ...(challenge !== undefined && { challenge }),
    },
  });
}

/** Whether the record has a selected value; true for a write of the whole record. */
const isSelected = ({ kind, values }: RecordContent, selection: Selection): boolean =>
  selection.indexes.length === 0 ||
  (kind === 'found' && valuesOf({ kind, values }).some(createValueFilter(selection)));

/**
 * Accepts the ETag of the compact or of the indented response. The indented response is rendered only if
 * needed.
 */
function* holdsFor(
  { method = '', headers }: IncomingMessage,
  record: RecordContent | undefined,
  handle: string,
  selection: Selection,
): Steps<boolean> {
  const conditions = { 'if-match': headers['if-match'], 'if-none-match': headers['if-none-match'] };
  const etags: string[] = [];
  const holds = (): boolean =>
    evaluatePreconditions(conditions, { method, exists: record !== undefined, etags }) !== 'failed';
  const excludesTags = namesTags(headers['if-none-match']);
  if (record === undefined || !(excludesTags || namesTags(headers['if-match']))) return holds();
  for (const pretty of [false, true]) {
    etags.push(yield* recordEtag(record, { handle, selection, format: { pretty }, encoding: 'identity' }));
    if (!excludesTags && holds()) return true;
  }
  return holds();
}
