// Answers of Handle servers: response codes, outcomes of reads and writes, lists of handles, and bodies.
import type { UpstreamAnswer } from '../errors.js';
import type { Bytes } from './bytes.js';
import { writeJson } from './json.js';
import type { HandleValue, Ttl } from './value.js';

export const RESPONSE_CODE = {
  success: 1,
  error: 2,
  serverBusy: 3,
  protocolError: 4,
  operationNotSupported: 5,
  serverReadOnly: 7,
  handleNotFound: 100,
  handleExists: 101,
  invalidHandle: 102,
  valuesNotFound: 200,
  valueExists: 201,
  invalidValue: 202,
  notResponsible: 301,
  serviceReferral: 302,
  prefixReferral: 303,
  invalidAdmin: 400,
  insufficientPermissions: 401,
  authenticationNeeded: 402,
  authenticationFailed: 403,
  sessionTimeout: 500,
  sessionFailed: 501,
} as const;

const ELSEWHERE: readonly (number | undefined)[] = [
  RESPONSE_CODE.notResponsible,
  RESPONSE_CODE.serviceReferral,
  RESPONSE_CODE.prefixReferral,
];

/** Whether the response says that a different server holds the handle: a foreign prefix, or a referral. */
export const isElsewhere = (responseCode: number | undefined): boolean => ELSEWHERE.includes(responseCode);

/** An existing handle, with its public values as a non-empty JSON array, and their TTLs. */
export interface Found {
  kind: 'found';
  values: Bytes;
  ttls: Ttl[];
  /** The values, already parsed; undefined for a record that is made from a URL. */
  parsed?: readonly HandleValue[];
}

/** An existing handle without public values (HTTP 200, code 200). */
interface Empty {
  kind: 'empty';
}

/** A missing handle (code 100). A server that is itself a proxy may add a message. */
interface NotFound {
  kind: 'not-found';
  message?: string;
}

/** A response that is passed to the client but not cached: foreign prefix, referral, server busy. */
export interface Refused extends UpstreamAnswer {
  kind: 'refused';
}

/** Cacheable outcomes. */
export type Answer = (Found | Empty | NotFound) & Source;

/** Marks outcomes from a secondary, which may lag behind the primary. */
interface Source {
  isFromSecondary?: true;
}

export type Outcome = Answer | (Refused & Source);

/** `changed` makes cached entries invalid; `unknown`: the server may have executed the write, or may still do so. */
export type WriteOutcome = 'changed' | 'unchanged' | 'unknown';

/** A purge, or a write that may have been executed. It contains neither values nor credentials. */
export interface LoggedChange {
  operation: 'create' | 'update' | 'delete' | 'purge';
  handle?: string;
  /** The purged prefix; empty for all handles. */
  prefix?: string;
  /** Indexes of the written values: undefined for a whole record, `various` if only the body names them. */
  indexes?: readonly number[] | 'various' | undefined;
  /** Identity of the Basic login (`index:handle`); undefined for a session and for anonymous requests. */
  identity?: string | undefined;
  /** Whether the Handle server has accepted the login; otherwise anyone may have claimed the identity. */
  isConfirmed: boolean;
  interface: string;
  outcome: Exclude<WriteOutcome, 'unchanged'>;
  requestId?: string;
}

/** A requested page, from 0. A list is whole unless both numbers are set (recordings "list: …"). */
export interface ListPage {
  page?: number;
  pageSize?: number;
}

/** The members of a list, of which the handles are the last. */
export type ListMembers = Record<string, unknown> & { handles: readonly string[] };

/** Returns the members of the response: one page, or all handles. */
export function listMembers(
  prefix: string,
  handles: readonly string[],
  { page, pageSize }: ListPage,
): ListMembers & { responseCode: number } {
  const of = { responseCode: RESPONSE_CODE.success, prefix, totalCount: String(handles.length) };
  if (page === undefined || pageSize === undefined) return { ...of, handles };
  return { ...of, page, pageSize, handles: handles.slice(page * pageSize, (page + 1) * pageSize) };
}

/** A body of the record interface, in a Handle server's property order. */
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
export const bodyOfMembers = (members: Record<string, unknown>, handle: string | undefined): string =>
  writeJson(handle === undefined ? members : { ...members, handle });
