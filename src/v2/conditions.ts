// ETag and Last-Modified of a record in v2, and the preconditions of a request.
import type { Request } from 'express';
import { ServiceError } from '../errors.js';
import type { HandleValue } from '../handle/value.js';
import { type Verdict, evaluatePreconditions } from '../http/preconditions.js';
import { etagOf } from '../http/representation.js';
import { canonicalForm, visibleValues } from './translation/translate.js';

/**
 * A strong ETag of the meaning of the values, not of the bytes of a response: the server's order and
 * timestamps do not change it, so the ETag of a write is known before the record is read back.
 */
export function recordEtag(values: readonly HandleValue[]): string {
  return etagOf(JSON.stringify(visibleValues(values).map(canonicalForm)), 'identity');
}

/** The newest timestamp of the visible values. */
export function lastModified(values: readonly HandleValue[]): Date | undefined {
  const newest = visibleValues(values)
    .map(({ timestamp }) => (typeof timestamp === 'string' ? Date.parse(timestamp) : NaN))
    .reduce((latest, time) => (time > latest ? time : latest), -Infinity);
  return newest === -Infinity ? undefined : new Date(newest);
}

/** ETag, and Last-Modified when the server has stamped the values. */
export function validatorHeaders(values: readonly HandleValue[]): Record<string, string> {
  const date = lastModified(values);
  return { ETag: recordEtag(values), ...(date !== undefined && { 'Last-Modified': date.toUTCString() }) };
}

/**
 * Evaluates the preconditions against the values that the caller can read; undefined: the handle does not exist.
 *
 * @throws ServiceError CONDITION_FAILED
 */
export function assertPreconditions(
  { method, headers }: Request,
  values: readonly HandleValue[] | undefined,
): Exclude<Verdict, 'failed'> {
  const etag = values && recordEtag(values);
  const state =
    values === undefined || etag === undefined
      ? { method, exists: false }
      : { method, exists: true, etags: [etag], lastModified: lastModified(values) };
  const verdict = evaluatePreconditions(headers, state);
  if (verdict !== 'failed') return verdict;
  throw new ServiceError('CONDITION_FAILED', { detail: describeFailure(headers, etag) });
}

function describeFailure(headers: Request['headers'], etag: string | undefined): string {
  const conditions = ['if-match', 'if-none-match', 'if-unmodified-since']
    .filter((name) => headers[name] !== undefined)
    .map((name) => `${name}: ${String(headers[name])}`);
  const state = etag === undefined ? 'the handle does not exist' : `the handle exists with the ETag ${etag}`;
  return `${conditions.join(', ')}, but ${state}`;
}
