// The ETag of a record as one caller sees it, computed from the Handle server's response to that caller.
import type { Bytes } from '../handle/bytes.js';
import { extractObject, parseJson, sliceMember } from '../handle/json.js';
import { publicValues, type Selection } from '../handle/value.js';
import { RESPONSE_CODE } from '../handle/response-codes.js';
import { type RecordContent, bodyOfEntry, render } from '../http/body.js';
import type { Format } from '../http/query.js';
import { type Encoding, etagOf } from '../http/representation.js';
import type { Steps } from '../time-slicer.js';

interface Members {
  responseCode?: unknown;
  values?: unknown;
}

/** Parses a 200 response, also inside JSONP; undefined when it shows no record. */
export function* parseRecord(body: string): Steps<RecordContent | undefined> {
  const json = extractObject(body);
  try {
    const members = parseJson(json) as Members;
    yield;
    return yield* recordOf(json, members);
  } catch {
    return undefined;
  }
}

/** From a 200 response and its parsed form. @throws TypeError for a value without index or type */
export function* recordOf(json: string, { responseCode, values }: Members): Steps<RecordContent | undefined> {
  if (responseCode === RESPONSE_CODE.valuesNotFound)
    return { kind: 'empty', values: '' as Bytes, message: '' };
  if (responseCode !== RESPONSE_CODE.success || !Array.isArray(values)) return undefined;
  const all = yield* publicValues(sliceMember(json, 'values') ?? '[]', values, () => true);
  return { kind: 'found', values: all.values, message: '' };
}

interface RecordForm {
  /** As the caller spells it. */
  handle: string;
  selection: Selection;
  format: Format;
  encoding: Encoding;
}

/** The tag of the record in this form. */
export function* recordEtag(
  record: RecordContent,
  { handle, selection, format, encoding }: RecordForm,
): Steps<string> {
  const { json } = yield* bodyOfEntry(record, handle, selection);
  const { text } = yield* render(json, format);
  return etagOf(text, encoding);
}
