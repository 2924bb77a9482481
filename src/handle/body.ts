// Bodies of the record interface: Handle JSON in a Handle server's property order.
import { writeJson } from './json.js';
import { type Answer, RESPONSE_CODE } from './outcome.js';

export interface Body {
  status: number;
  json: string;
}

/** Writes the body of a record, with its `selected` values. Echoes `handle` in the caller's spelling. */
export function bodyOfRecord(
  { kind, message }: { kind: Answer['kind']; message: string },
  handle: string,
  selected: string | undefined,
): Body {
  const { handleNotFound, success, valuesNotFound } = RESPONSE_CODE;
  if (kind === 'not-found') {
    const members = { responseCode: handleNotFound, ...(message !== '' && { message }) };
    return { status: 404, json: bodyOfMembers(members, handle) };
  }
  const json =
    selected === undefined
      ? bodyOfMembers({ responseCode: valuesNotFound, values: [] }, handle)
      : `{"responseCode":${success},"handle":${writeJson(handle)},"values":${selected}}`;
  return { status: 200, json };
}

/** Writes a body without values. The handle, if any, is last, as in Handle server recordings. */
export function bodyOfMembers(members: Record<string, unknown>, handle: string | undefined): string {
  return writeJson(handle === undefined ? members : { ...members, handle });
}
