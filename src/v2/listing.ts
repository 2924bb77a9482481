// The handles of a prefix, with the caller's right to list them.
import { ServiceError } from '../errors.js';
import type { RecordAnswer } from '../upstream/record-answer.js';
import type { Call, V2Deps } from './deps.js';
import { refusalOf } from './refusal.js';

export interface Paging {
  /** 0: all. */
  limit: number;
  /** From 1. */
  page: number;
}

export async function listHandles(
  { records }: Pick<V2Deps, 'records'>,
  { login }: Call,
  { prefix, limit, page }: Paging & { prefix: string },
): Promise<string[]> {
  const paging = limit === 0 ? {} : { page: page - 1, pageSize: limit };
  const answer = await records.list(prefix, { authorization: login.authorization, ...paging });
  const { handles } = requireGood(answer).members;
  const isList = Array.isArray(handles) && handles.every((handle) => typeof handle === 'string');
  if (!isList) throw new ServiceError('UPSTREAM_BAD_ANSWER', { detail: 'a list without handles' });
  return handles;
}

/** A page of no length has nothing but the count on it. */
export async function countHandles(
  { records }: Pick<V2Deps, 'records'>,
  { login }: Call,
  prefix: string,
): Promise<number> {
  const { authorization } = login;
  const answer = await records.list(prefix, { authorization, page: 0, pageSize: 0 });
  // A text of digits (recording "list: page=0&pageSize=3").
  const { totalCount } = requireGood(answer).members;
  const count = typeof totalCount === 'string' ? Number(totalCount) : totalCount;
  if (typeof count === 'number' && Number.isInteger(count)) return count;
  throw new ServiceError('UPSTREAM_BAD_ANSWER', { detail: 'a list without totalCount' });
}

function requireGood(answer: RecordAnswer): RecordAnswer {
  if (answer.status === 200) return answer;
  throw refusalOf(answer, 'read');
}
