// A record as one caller may see it.
import { RESPONSE_CODE } from '../handle/response-codes.js';
import type { HandleValue } from '../handle/value.js';
import { type RecordClient, readVisible } from '../upstream/record-client.js';
import type { Login } from './login.js';
import { refusalOf } from './refusal.js';

export interface CallerRecord {
  values: HandleValue[];
  /** False when the caller may read the public values only. */
  isFull: boolean;
}

/**
 * Reads a record with the caller's credentials. Undefined: there is no such handle.
 *
 * @throws ServiceError when the server refuses or fails
 */
export async function readAs(
  records: Pick<RecordClient, 'get'>,
  login: Login,
  { handle, authoritative }: { handle: string; authoritative: boolean },
): Promise<CallerRecord | undefined> {
  const { authorization } = login;
  const answer = await readVisible(records, handle, { authorization, authoritative });
  if (answer.values !== undefined) return { values: answer.values, isFull: answer.isFull };
  const { handleNotFound, notResponsible } = RESPONSE_CODE;
  if (answer.responseCode === handleNotFound) return undefined;
  // A foreign prefix is nothing to write over: what a write there leads to, the server says by itself.
  if (answer.responseCode === notResponsible && authoritative) return undefined;
  throw refusalOf(answer, 'read');
}
