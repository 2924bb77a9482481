// Evaluates If-Match, If-None-Match and If-Unmodified-Since (RFC 9110 §13).
import type { IncomingMessage } from 'node:http';
import { ServiceError } from '../errors.js';

const CONDITIONS = ['if-match', 'if-none-match', 'if-unmodified-since'] as const;

export type ConditionHeaders = { [Name in (typeof CONDITIONS)[number]]?: string | undefined };

/** Returns the names of the conditions of a write (§13.1.1, §13.1.2, §13.1.4). */
export const conditionsOf = (headers: ConditionHeaders): (keyof ConditionHeaders)[] =>
  CONDITIONS.filter((name) => headers[name] !== undefined);

/** Whether a write is conditional. Only then is the previous record's ETag needed. */
export const isConditional = ({ headers }: IncomingMessage): boolean => conditionsOf(headers).length > 0;

export interface ResourceState {
  method: string;
  exists: boolean;
  /** ETags of every representation. */
  etags?: readonly string[] | undefined;
}

export type Verdict = 'pass' | 'not-modified' | 'failed';

/**
 * Evaluates preconditions in the order of RFC 9110 §13.2.2. For a missing handle, `If-Match` always fails,
 * even for GET and DELETE, as in the original service.
 *
 * @throws ServiceError BAD_REQUEST for a header that is not a list of entity tags
 */
export function evaluatePreconditions(headers: ConditionHeaders, state: ResourceState): Verdict {
  if (!passesIfMatch(headers, state)) return 'failed';
  if (isModified(headers, state)) return 'pass';
  return isRead(state) ? 'not-modified' : 'failed';
}

/**
 * Whether the request is a PUT whose only write condition is `If-None-Match: *`. It needs neither read nor
 * lock, because the Handle server checks and writes atomically.
 */
export const isCreateOnly = ({ method, headers }: IncomingMessage): boolean =>
  method === 'PUT' && headers['if-none-match']?.trim() === '*' && conditionsOf(headers).length === 1;

const isRead = ({ method }: ResourceState): boolean => method === 'GET' || method === 'HEAD';

/**
 * Evaluates If-Match, else If-Unmodified-Since (§13.1.1, §13.1.4). A record has no modification date: its
 * newest timestamp goes back when a value is removed, and two writes may have the same second. A write of
 * ePIC v2 with `If-Unmodified-Since` alone fails instead of undoing a change that its client has not seen.
 */
function passesIfMatch(headers: ConditionHeaders, state: ResourceState): boolean {
  const { exists, etags = [] } = state;
  const tags = readTags('If-Match', headers['if-match']);
  // Strong comparison: a weak tag matches nothing (§8.8.3.2).
  if (tags !== undefined) return exists && (tags === '*' || tags.some((tag) => etags.includes(tag)));
  return isRead(state) || headers['if-unmodified-since'] === undefined;
}

/** Explains a weak tag in If-Match, which matches nothing; undefined without one. */
export function weakTagProblem({ 'if-match': header = '' }: ConditionHeaders): string | undefined {
  if (!/(?:^|[\s,])W\/"/.test(header)) return undefined;
  return 'If-Match has a weak ETag, which matches nothing (RFC 9110, section 13.1.1); if the ETag of a GET is weak, turn off compression in the web server in front';
}

/** Evaluates If-None-Match (§13.1.2). Without a modification date, If-Modified-Since is ignored (§13.1.3). */
function isModified(headers: ConditionHeaders, { exists, etags = [] }: ResourceState): boolean {
  const tags = readTags('If-None-Match', headers['if-none-match']);
  if (tags === '*') return !exists;
  // Weak comparison ignores `W/`.
  if (tags === undefined) return true;
  return !exists || !etags.some((etag) => tags.map(opaque).includes(opaque(etag)));
}

/** Evaluates If-None-Match of a public read; never fails: text that is no tag matches nothing. `etag` is strong. */
export function isNotModified(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  if (ifNoneMatch === etag) return true;
  return ifNoneMatch.split(',').some((part) => {
    const tag = opaque(part.trim());
    return tag === '*' || tag === etag || tag.replace(FRONT_SUFFIX, '') === etag;
  });
}

const opaque = (tag: string): string => tag.replace(/^W\//, '');

/** The suffix of a web server in front that compresses. A digest has 22 characters, and may end like a suffix. */
const FRONT_SUFFIX = /(?<=^"[\w-]{22})-(?:gzip|br|zstd)(?="$)/;
const ANY_SUFFIX = /(?<=^(?:W\/)?"[\w-]{22})-(?:gz|gzip|br|zstd)(?="$)/;

const ENTITY_TAGS = /(?:W\/)?"[\x21\x23-\x7e\x80-\uffff]*"/g;
const TAG_LIST = /^(?:[\s,]*(?:W\/)?"[\x21\x23-\x7e\x80-\uffff]*"(?=[\s,]|$))+[\s,]*$/;

/** Parses `*` or a tag list, which may contain empty elements (§5.6.1.2). Returns tags of uncompressed responses. */
function readTags(name: string, header: string | undefined): '*' | string[] | undefined {
  const text = header?.trim();
  if (text === undefined || text === '*') return text;
  if (TAG_LIST.test(text)) return (text.match(ENTITY_TAGS) ?? []).map((tag) => tag.replace(ANY_SUFFIX, ''));
  throw new ServiceError('BAD_REQUEST', { detail: `${name} has to be * or a list of tags in double quotes` });
}
