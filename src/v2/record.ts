// A record as one caller may see it.
import { RESPONSE_CODE } from '../handle/response-codes.js';
import type { HandleValue } from '../handle/value.js';
import type { RecordClient, RecordRead } from '../upstream/record-client.js';
import type { Login } from './login.js';
import { refusalOf } from './refusal.js';

export interface CallerRecord {
  values: HandleValue[];
  /** False when the caller may read the public values only. */
  isFull: boolean;
}

/**
 * Reads a record with the caller's credentials. A server refuses the whole question when one value may
 * not be seen; then the public ones are asked for. Undefined: there is no such handle.
 *
 * @throws ServiceError when the server refuses or fails
 */
export async function readAs(
  records: Pick<RecordClient, 'get'>,
  login: Login,
  { handle, authoritative }: { handle: string; authoritative: boolean },
): Promise<CallerRecord | undefined> {
  const { authorization } = login;
  const whole = await records.get(handle, { authorization, authoritative });
  if (!hidesValues(whole)) return recordOf(whole, true);
  return recordOf(await records.get(handle, { authorization, authoritative, publicOnly: true }), false);
}

const hidesValues = ({ status, responseCode }: RecordRead): boolean =>
  status === 403 &&
  (responseCode === RESPONSE_CODE.invalidAdmin || responseCode === RESPONSE_CODE.insufficientPermissions);

function recordOf(answer: RecordRead, isFull: boolean): CallerRecord | undefined {
  if (answer.values !== undefined) return { values: answer.values, isFull };
  const { handleNotFound, notResponsible } = RESPONSE_CODE;
  if (answer.responseCode === handleNotFound || answer.responseCode === notResponsible) return undefined;
  throw refusalOf(answer, 'read');
}
