// An anonymous read of the record interface, parsed once from the raw request target.
import { ServiceError } from '../errors.js';
import type { HandleRef } from '../handle/handle.js';
import { type Format, type RecordQuery, readFormat, readParameters, readRecordQuery } from '../http/query.js';
import { isBatch } from './batch/request.js';
import { type Target, rawHandleOf, readHandle, readTarget } from '../http/target.js';

interface ParsedRequest {
  target: Target;
  format: Format;
}

export interface ValidRequest extends ParsedRequest {
  handle: HandleRef;
  query: RecordQuery;
}

/** The handle is undefined when the path names none, or when the request is refused. */
export interface FailedRequest extends ParsedRequest {
  handle: HandleRef | undefined;
  failure: ServiceError;
}

/**
 * Undefined for batches, for what is passed through to the Handle server, and for other interfaces. A refused request is parsed
 * for the form of its reply.
 */
export function parseRecordRequest(
  rawTarget: string,
  refOf: (text: string) => HandleRef,
  refusal?: ServiceError,
): ValidRequest | FailedRequest | undefined {
  const target = readTarget(rawTarget);
  const rawHandle = rawHandleOf(target.path);
  if (rawHandle === undefined) return undefined;
  const parameters = readParameters(target.query);
  if (isList(rawHandle, parameters) || (rawHandle === '' && isBatch(parameters))) return undefined;
  const parsed = { target, format: readFormat(parameters) };
  if (refusal !== undefined) return { ...parsed, handle: undefined, failure: refusal };
  let handle: HandleRef | undefined;
  try {
    handle = refOf(readHandle(rawHandle));
    const query = readRecordQuery(parameters);
    return query.publicOnly ? { ...parsed, handle, query } : undefined;
  } catch (failure) {
    if (failure instanceof ServiceError) return { ...parsed, handle, failure };
    throw failure;
  }
}

/** `/api/handles?prefix=…` names no handle: it lists those under a prefix. */
export const isList = (rawHandle: string, parameters: URLSearchParams): boolean =>
  rawHandle === '' && parameters.has('prefix');
