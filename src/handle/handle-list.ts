// The list of a prefix's handles, in a Handle server's JSON.
import { RESPONSE_CODE } from './response-codes.js';

/** A requested page, from 0. A list is whole unless both numbers are set (recordings "list: …"). */
export interface ListPage {
  page?: number;
  pageSize?: number;
}

/** Returns the members of the response: one page, or all handles. */
export function listMembers(prefix: string, handles: readonly string[], { page, pageSize }: ListPage) {
  const of = { responseCode: RESPONSE_CODE.success, prefix, totalCount: String(handles.length) };
  if (page === undefined || pageSize === undefined) return { ...of, handles };
  return { ...of, page, pageSize, handles: handles.slice(page * pageSize, (page + 1) * pageSize) };
}
