// Renders Handle JSON response bodies, in a Handle server's property order.
import type { RecordContent } from '../cache/entry.js';
import { toText } from '../handle/bytes.js';
import { indentJson } from '../handle/indent.js';
import { writeJson } from '../handle/json.js';
import { selectValues, selectsAll, type Selection } from '../handle/value.js';
import { RESPONSE_CODE } from '../handle/response-codes.js';
import { readValues } from '../resolver/parsed-records.js';
import type { Steps } from '../time-slicer.js';
import type { Format } from './query.js';

/** Spelled as in the recordings (Jetty 9). */
export const JSON_TYPE = 'application/json;charset=utf-8';
const JSONP_TYPE = 'application/javascript;charset=utf-8';

export interface Body {
  status: number;
  json: string;
}

/** Renders the body of an entry for a query. Echoes `handle` in the caller's spelling. */
export function* bodyOfEntry(entry: RecordContent, handle: string, selection: Selection): Steps<Body> {
  if (entry.kind !== 'found' || selectsAll(selection)) return bodyOfWhole(entry, handle);
  return bodyOfValues(yield* selectValues(entry.values, yield* readValues(entry), selection), handle);
}

/** Builds the body of an entry with all values, exactly as stored. */
function bodyOfWhole(entry: RecordContent, handle: string): Body {
  if (entry.kind !== 'not-found') {
    return bodyOfValues(entry.kind === 'found' ? toText(entry.values) : undefined, handle);
  }
  const members = { responseCode: RESPONSE_CODE.handleNotFound, ...messageOf(entry) };
  return { status: 404, json: bodyOfMembers(members, handle) };
}

/** Builds the body of an existing handle. `values`: undefined if no value matches. */
function bodyOfValues(values: string | undefined, handle: string): Body {
  const { success, valuesNotFound } = RESPONSE_CODE;
  const json =
    values === undefined
      ? bodyOfMembers({ responseCode: valuesNotFound, values: [] }, handle)
      : `{"responseCode":${success},"handle":${writeJson(handle)},"values":${values}}`;
  return { status: 200, json };
}

/** Renders an unsuccessful body. The handle, if any, is last, as in Handle server recordings. */
export function bodyOfMembers(members: Record<string, unknown>, handle: string | undefined): string {
  return writeJson(handle === undefined ? members : { ...members, handle });
}

/** Renders the text to send and its type: indented for `pretty` if that is not too long, wrapped as JSONP for a callback. */
export function* render(json: string, format: Format): Steps<{ contentType: string; text: string }> {
  const { contentType, before, after } = frameOf(format);
  const shown = format.pretty ? yield* indentJson(json) : json;
  return { contentType, text: before + shown + after };
}

/** Returns the media type of a body, and the text around its JSON. */
export function frameOf({ callback }: Format): { contentType: string; before: string; after: string } {
  if (callback === undefined) return { contentType: JSON_TYPE, before: '', after: '' };
  return { contentType: JSONP_TYPE, before: `${callback}(`, after: ');' };
}

const messageOf = ({ message }: RecordContent): { message?: string } => (message === '' ? {} : { message });
