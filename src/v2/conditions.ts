// Holds a request to its preconditions.
import type { Request } from 'express';
import { ServiceError } from '../errors.js';
import type { HandleValue } from '../handle/value.js';
import { type Verdict, evaluatePreconditions } from '../http/preconditions.js';
import { etagOf, lastModified } from './etag.js';

/**
 * Judges the conditions against what the caller sees; `values` undefined: there is no such handle.
 *
 * @throws ServiceError CONDITION_FAILED
 */
export function demandConditions(
  { method, headers }: Request,
  values: readonly HandleValue[] | undefined,
): Exclude<Verdict, 'failed'> {
  const etag = values && etagOf(values);
  const state =
    values === undefined || etag === undefined
      ? { method, exists: false }
      : { method, exists: true, etags: [etag], lastModified: lastModified(values) };
  const verdict = evaluatePreconditions(headers, state);
  if (verdict !== 'failed') return verdict;
  throw new ServiceError('CONDITION_FAILED', { detail: describe(headers, etag) });
}

function describe(headers: Request['headers'], etag: string | undefined): string {
  const named = ['if-match', 'if-none-match', 'if-unmodified-since']
    .filter((name) => headers[name] !== undefined)
    .map((name) => `${name}: ${String(headers[name])}`);
  const state = etag === undefined ? 'the handle does not exist' : `the handle exists with the ETag ${etag}`;
  return `${named.join(', ')}, but ${state}`;
}
