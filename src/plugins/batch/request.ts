// Reads the handles and the value selection of a batch request from the query or from a JSON body.
import { z } from 'zod';
import { ServiceError } from '../../errors.js';
import { type JsonLimits, parseUpToIssue } from '../../http/request-body.js';
import { type RecordQuery, readParameters, readRecordQuery } from '../../http/target.js';
import { ERRORS } from './plugin.js';

/** Maximum number of handles per batch; smaller for GET, whose handles are in the request line. */
export const MAX_HANDLES = { GET: 100, POST: 1000 };

/**
 * Maximum number of types and of indexes in a body, because each is compared with every value of every
 * handle.
 */
const MAX_SELECTORS = 100;

/** The handles, two lists of selectors, and the body itself. */
export const BATCH_LIMITS: JsonLimits = {
  elements: MAX_HANDLES.POST,
  values: MAX_HANDLES.POST + 2 * MAX_SELECTORS + 10,
};

export interface BatchRequest {
  /** The handles as spelled by the caller; they may be invalid. */
  handles: readonly string[];
  query: RecordQuery;
}

const oneOrMore = <T extends z.ZodType>(schema: T) =>
  z.union([schema, z.array(schema).max(MAX_SELECTORS)]).optional();

/** Rejects unknown members, because a misspelt `type` would change the result. */
export const batchBody = z.strictObject({
  handles: z.array(z.string()),
  type: oneOrMore(z.string()),
  index: oneOrMore(z.union([z.int(), z.string()])),
});

/** Reads a batch from the query. @throws ServiceError BATCH_TOO_LARGE, BAD_PARAMETER */
export function readBatchQuery(query: string): BatchRequest {
  const parameters = readParameters(query);
  return readBatch(parameters.getAll('handle'), parameters, MAX_HANDLES.GET);
}

/**
 * Reads a batch from the body and the query. @throws ServiceError BATCH_BAD_BODY, BATCH_TOO_LARGE,
 * BAD_PARAMETER
 */
export function readBatchBody(body: unknown, query: string): BatchRequest {
  const parsed = parseUpToIssue(batchBody, body);
  if (!parsed.success) throw badBody(parsed.error.issues[0]);
  const { handles, type = [], index = [] } = parsed.data;
  const parameters = readParameters(query);
  for (const text of [type].flat()) parameters.append('type', text);
  for (const text of [index].flat()) parameters.append('index', String(text));
  return readBatch(handles, parameters, MAX_HANDLES.POST);
}

function badBody(issue: z.core.$ZodIssue | undefined): ServiceError {
  const place = issue?.path.join('.') ?? '';
  const reason = `${place}${place === '' ? '' : ': '}${issue?.message ?? 'invalid'}`;
  return new ServiceError(ERRORS.BATCH_BAD_BODY, {
    detail: `give {"handles": ["…"]}, and "type": ["…"] and "index": [1] to select values (${reason})`,
  });
}

function readBatch(handles: readonly string[], parameters: URLSearchParams, max: number): BatchRequest {
  if (handles.length > max) {
    const detail = `${handles.length}; GET accepts at most ${MAX_HANDLES.GET}, POST /api/resolve at most ${MAX_HANDLES.POST}`;
    throw new ServiceError(ERRORS.BATCH_TOO_LARGE, { detail });
  }
  const query = readRecordQuery(parameters);
  // Neither option can be served from the cache, so a batch would cause up to a thousand requests to the
  // Handle server.
  if (query.authoritative || !query.publicOnly) {
    const detail = 'auth=true and publicOnly=false are for single handles; a batch is served from the cache';
    throw new ServiceError('BAD_PARAMETER', { detail });
  }
  return { handles, query };
}
