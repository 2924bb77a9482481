// The answer to a PUT or POST that was carried out: 201 with the address, or 204.
import { writeJson } from '../handle/json.js';
import type { HandleValue } from '../handle/value.js';
import type { Call, V2Deps } from './deps.js';
import { etagOf, lastModified } from './etag.js';
import { locationOf } from './location.js';
import { readAs } from './record.js';
import { JSON_TYPE, PRIVATE, send } from './send.js';

export interface Written {
  handle: string;
  /** How the client spelled it, where it did. */
  rawHandle?: string;
  isNew: boolean;
  /** What was sent, in case it cannot be read back. */
  values: readonly HandleValue[];
  /** False: others may have changed the handle since it was written. */
  isHeld?: boolean;
}

export async function sendWritten(
  { records, settings }: Pick<V2Deps, 'records' | 'settings'>,
  { req, res, login }: Call,
  written: Written,
): Promise<void> {
  const { handle, isNew, values, isHeld = true } = written;
  // The server stamps values itself and may write them otherwise, so the tag is made of what it has now.
  const read = await readAs(records, login, { handle, authoritative: true }).catch(() => undefined);
  // But never of what somebody else wrote (RFC 9110 §9.3.4): the client would take it for its own.
  const isOwn = read !== undefined && (isHeld || etagOf(read.values) === etagOf(values));
  const headers = { ...PRIVATE, ...validatorsOf(isOwn ? read.values : values) };
  if (!isNew) {
    send(res, { status: 204, headers });
    return;
  }
  send(res, {
    status: 201,
    headers: { ...headers, Location: locationOf(req, settings, written) },
    contentType: JSON_TYPE,
    body: writeJson({ 'epic-pid': handle }),
  });
}

/** ETag, and Last-Modified where the server has stamped the values. */
export function validatorsOf(values: readonly HandleValue[]): Record<string, string> {
  const date = lastModified(values);
  return { ETag: etagOf(values), ...(date !== undefined && { 'Last-Modified': date.toUTCString() }) };
}
