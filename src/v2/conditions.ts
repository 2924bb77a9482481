// ETag and Last-Modified of a record in v2, and the preconditions of a request.
import type { Request } from 'express';
import { ServiceError } from '../errors.js';
import type { HandleValue } from '../handle/value.js';
import { type Verdict, evaluatePreconditions } from '../http/preconditions.js';
import { etagOf } from '../http/representation.js';
import type { Steps } from '../time-slicer.js';
import { canonicalForm, visibleValues } from './translation/translate.js';

/**
 * A strong ETag of the meaning of the values, not of the bytes of a response: the server's order and
 * timestamps do not change it, so the ETag of a write is known before the record is read back.
 */
export function* recordEtag(values: readonly HandleValue[]): Steps<string> {
  const forms: string[] = [];
  for (const value of visibleValues(values)) {
    forms.push(canonicalForm(value));
    yield;
  }
  return etagOf(JSON.stringify(forms), 'identity');
}

export interface Validators {
  etag: string;
  lastModified: Date | undefined;
}

export function* validatorsOf(values: readonly HandleValue[]): Steps<Validators> {
  return { etag: yield* recordEtag(values), lastModified: lastModified(values) };
}

/** The newest timestamp of the visible values. */
function lastModified(values: readonly HandleValue[]): Date | undefined {
  const newest = visibleValues(values)
    .map(({ timestamp }) => (typeof timestamp === 'string' ? Date.parse(timestamp) : NaN))
    .reduce((latest, time) => (time > latest ? time : latest), -Infinity);
  return newest === -Infinity ? undefined : new Date(newest);
}

/** ETag, and Last-Modified when the server has stamped the values. */
export const validatorHeaders = ({ etag, lastModified: date }: Validators): Record<string, string> => ({
  ETag: etag,
  ...(date !== undefined && { 'Last-Modified': date.toUTCString() }),
});

/**
 * Evaluates the preconditions against the record that the caller can read; undefined: the handle does not exist.
 *
 * @throws ServiceError CONDITION_FAILED
 */
export function assertPreconditions(
  { method, headers }: Request,
  record: Validators | undefined,
): Exclude<Verdict, 'failed'> {
  const state =
    record === undefined
      ? { method, exists: false }
      : { method, exists: true, etags: [record.etag], lastModified: record.lastModified };
  const verdict = evaluatePreconditions(headers, state);
  if (verdict !== 'failed') return verdict;
  throw new ServiceError('CONDITION_FAILED', { detail: describeFailure(headers, record?.etag) });
}

function describeFailure(headers: Request['headers'], etag: string | undefined): string {
  const conditions = ['if-match', 'if-none-match', 'if-unmodified-since']
    .filter((name) => headers[name] !== undefined)
    .map((name) => `${name}: ${String(headers[name])}`);
  const state = etag === undefined ? 'the handle does not exist' : `the handle exists with the ETag ${etag}`;
  return `${conditions.join(', ')}, but ${state}`;
}
