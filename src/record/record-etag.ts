// The ETag of a record as one caller sees it, from what the Handle server answered that caller.
import { objectIn, parseJson, sliceMember } from '../handle/json.js';
import { publicValues } from '../handle/record.js';
import { RESPONSE_CODE } from '../handle/response-codes.js';
import type { Selection } from '../handle/value.js';
import type { Bytes } from '../handle/bytes.js';
import { type Said, bodyOfEntry, render } from '../http/body.js';
import type { Format } from '../http/query.js';
import { etagOf } from '../http/representation.js';

/** Reads a 200 answer, also inside JSONP; undefined when it shows no record. */
export function readSaid(body: string): Said | undefined {
  const json = objectIn(body);
  try {
    const { responseCode, values } = parseJson(json) as { responseCode?: unknown; values?: unknown };
    if (responseCode === RESPONSE_CODE.valuesNotFound)
      return { kind: 'empty', values: '' as Bytes, message: '' };
    if (responseCode !== RESPONSE_CODE.success || !Array.isArray(values)) return undefined;
    const all = publicValues(sliceMember(json, 'values') ?? '[]', values, () => true);
    return { kind: 'found', values: all.values, message: '' };
  } catch {
    return undefined;
  }
}

interface Asked {
  /** As the caller spells it. */
  handle: string;
  selection: Selection;
  format: Format;
}

/** The tag of the answer in this form, before it is compressed. */
export function tagOfRecord(said: Said, { handle, selection, format }: Asked): string {
  const { json } = bodyOfEntry(said, handle, selection);
  return etagOf(render(json, format).bytes, 'identity');
}
