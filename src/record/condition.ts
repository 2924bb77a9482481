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
import type { RunSteps } from '../http/request-work.js';
import type { Format } from '../http/target.js';
import { readValues, selectJson } from '../resolver/parsed-records.js';
import type { RecordRead } from '../upstream/contract.js';

interface Members {
  responseCode?: unknown;
  values?: unknown;
}

/** Parses a 200 response, including JSONP; undefined if it contains no record. */
export async function readForwardedRecord(
  body: string,
  runSteps: RunSteps,
): Promise<RecordContent | undefined> {
  const json = extractObject(body);
  try {
    const members = await runSteps(() => parseJson(json) as Members, json.length);
    return await recordOf(json, members, runSteps);
  } catch (error) {
    // The client has left, or too many records wait.
    if (error instanceof ServiceError) throw error;
    return undefined;
  }
}

/**
 * Reads the record from a 200 response and its parsed members. @throws TypeError for a value without index or
 * type
 */
async function recordOf(
  json: string,
  { responseCode, values }: Members,
  runSteps: RunSteps,
): Promise<RecordContent | undefined> {
  if (responseCode === RESPONSE_CODE.valuesNotFound)
    return { kind: 'empty', values: '' as Bytes, message: '' };
  if (responseCode !== RESPONSE_CODE.success || !Array.isArray(values)) return undefined;
  const written = await runSteps(() => sliceMember(json, 'values') ?? '[]', json.length);
  const all = await runSteps(publicValues(written, values, true), json.length);
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
export async function recordEtag(
  record: RecordContent,
  { handle, selection, format, encoding }: RecordForm,
  runSteps: RunSteps,
): Promise<string> {
  const selected = await runSteps(selectJson(record, selection), record.values.length);
  const { json } = bodyOfEntry(record, handle, selected);
  const { text } = await renderText(json, format, runSteps);
  return runSteps(() => etagOf(text, encoding), text.length);
}

interface WriteCondition {
  req: IncomingMessage;
  /** The handle as spelled by the caller. */
  handle: string;
  /** As in the query. */
  indexes: readonly string[];
}

/**
 * Checks the precondition of a write against the record as its caller currently sees it.
 *
 * @throws ServiceError PRECONDITION_FAILED, BAD_REQUEST for a malformed header, UPSTREAM_FAILED if the Handle
 * server does not return the record
 */
export async function assertCondition(
  condition: WriteCondition,
  response: RecordRead,
  runSteps: RunSteps,
): Promise<void> {
  const { headers } = condition.req;
  const selection = writtenSelection(condition.indexes);
  const record = await shownRecord(response, runSteps);
  const exists = record !== undefined && (await isSelected(record, selection, runSteps));
  if (await holdsFor(condition, exists ? record : undefined, selection, runSteps)) return;
  // The ETag may also cover the whole record, even before the value exists; `*` covers only the selection.
  const isOfValues = selection.indexes.length > 0 && namesTags(headers['if-match']);
  if (isOfValues && (await holdsFor(condition, record, WHOLE, runSteps))) return;
  throw new ServiceError('PRECONDITION_FAILED', {
    detail: exists ? (weakTagProblem(headers) ?? 'the record has changed') : 'the record does not exist',
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

async function shownRecord(response: RecordRead, runSteps: RunSteps): Promise<RecordContent | undefined> {
  const { status, responseCode, body, members } = response;
  if (responseCode === RESPONSE_CODE.handleNotFound) return undefined;
  const record = status === 200 ? await recordOf(body, members, runSteps) : undefined;
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
async function isSelected(record: RecordContent, selection: Selection, runSteps: RunSteps): Promise<boolean> {
  if (selection.indexes.length === 0) return true;
  const values = await readValues(record, runSteps);
  return values.some(createValueFilter(selection));
}

/**
 * Accepts the ETag of the compact or of the indented response. The indented response is rendered only if
 * needed.
 */
async function holdsFor(
  { req: { method = '', headers }, handle }: WriteCondition,
  record: RecordContent | undefined,
  selection: Selection,
  runSteps: RunSteps,
): Promise<boolean> {
  const conditions = { 'if-match': headers['if-match'], 'if-none-match': headers['if-none-match'] };
  const etags: string[] = [];
  const holds = (): boolean =>
    evaluatePreconditions(conditions, { method, exists: record !== undefined, etags }) !== 'failed';
  const excludesTags = namesTags(headers['if-none-match']);
  if (record === undefined || !(excludesTags || namesTags(headers['if-match']))) return holds();
  for (const pretty of [false, true]) {
    const form = { handle, selection, format: { pretty }, encoding: 'identity' } as const;
    etags.push(await recordEtag(record, form, runSteps));
    if (!excludesTags && holds()) return true;
  }
  return holds();
}
