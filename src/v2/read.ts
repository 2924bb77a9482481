// GET of a handle: the record as visible to its caller, its validators, and request preconditions.
import { createHash } from 'node:crypto';
import { ServiceError } from '../errors.js';
import type { HandleRef } from '../handle/handle.js';
import { RESPONSE_CODE, isElsewhere } from '../handle/outcome.js';
import type { HandleValue } from '../handle/value.js';
import { cacheHeaders } from '../http/cache-headers.js';
import { noteRead } from '../http/context.js';
import { identityOf } from '../http/identity.js';
import { type Verdict, conditionsOf, evaluatePreconditions, weakTagProblem } from '../http/preconditions.js';
import { JSON_TYPE, NO_STORE, etagOfDigest } from '../http/reply.js';
import type { FromEntry } from '../resolver/resolution.js';
import { readValues } from '../resolver/parsed-records.js';
import type { Steps } from '../time-slicer.js';
import { type OriginRecord, readVisible } from '../write/origin-record.js';
import { type V2Request, type V2Call, originFor, refusalError, sendV2 } from './call.js';
import { canonicalForm, decodeValue, visibleValues, writeV2Value } from './translation/record.js';

/** Values, and the length of their JSON (characters), which estimates the processing time. */
export interface SizedValues {
  values: readonly HandleValue[];
  chars: number;
}

/** Reads with the caller's login, bypassing the cache. */
export async function getHandle(call: V2Call, handle: HandleRef): Promise<void> {
  call.context.result = 'bypass';
  const record = await readAsCaller(originFor(call, handle), { authoritative: false });
  await sendValues(call, record, NO_STORE);
}

/** Reads without a login, from the shared cache. */
export async function getPublicHandle(call: V2Request, handle: HandleRef): Promise<void> {
  const resolution = await resolvePublic(call, handle);
  noteRead(call.context, resolution, { authoritative: false });
  const { freshness, host } = call.v2;
  if (resolution.stale) host.metrics.countStale(resolution.stale);
  const headers = cacheHeaders({ resolution, authoritative: false, now: resolution.readAt, freshness });
  // A 404 is sent as a problem document, which keeps this header.
  call.res.setHeader('Cache-Status', headers['Cache-Status'] ?? '');
  await sendValues(call, await sizedValuesOf(call, resolution), headers);
}

/** Sends a record. A handle without visible values is 404, but exists for preconditions. */
async function sendValues(
  { req, res, run }: V2Request,
  record: SizedValues | undefined,
  headers: Record<string, string>,
): Promise<void> {
  const shown: string[] = [];
  const etag = record && (await run(renderEtag(record.values, shown), record.chars));
  const verdict = assertPreconditions(req, etag);
  if (etag === undefined || shown.length === 0) throw new ServiceError('V2_NOT_FOUND');
  const all = { ...headers, ETag: etag };
  if (verdict === 'not-modified') sendV2(res, { status: 304, headers: all });
  else sendV2(res, { status: 200, headers: all, contentType: JSON_TYPE, body: `[${shown.join(',')}]` });
}

export interface CallerRecord extends SizedValues {
  /** False if the caller can read only public values. */
  isFull: boolean;
}

/** Reads a record with the caller's login; undefined if missing. @throws ServiceError if the server refuses or fails */
export async function readAsCaller(
  origin: OriginRecord,
  { authoritative }: { authoritative: boolean },
): Promise<CallerRecord | undefined> {
  const answer = await readVisible(origin, { authoritative });
  const { values, isFull, body } = answer;
  if (values !== undefined) return { values, isFull, chars: body.length };
  if (answer.responseCode === RESPONSE_CODE.handleNotFound) return undefined;
  // Before a write, a foreign handle counts as missing; the server itself then refuses the foreign prefix.
  if (isElsewhere(answer.responseCode) && authoritative) return undefined;
  throw refusalError(answer, 'read');
}

/** Verifies the password with a read of public values. @throws ServiceError V2_LOGIN_NEEDED */
export async function assertLogin(get: OriginRecord['get']): Promise<void> {
  const answer = await get({ publicOnly: true });
  if (answer.status === 401) throw refusalError(answer, 'read');
}

/** Reads public values through the cache; undefined if missing. @throws ServiceError if the server refuses or fails */
export async function readPublic(call: V2Request, handle: HandleRef): Promise<SizedValues | undefined> {
  return sizedValuesOf(call, await resolvePublic(call, handle));
}

async function resolvePublic(
  { v2: { host }, req, context, run }: V2Request,
  handle: HandleRef,
): Promise<FromEntry> {
  const { authorization } = req.headers;
  const login = { caller: context.caller, authorization, identity: identityOf(authorization) };
  const { caller } = host.originOf(handle, login);
  const options = { authoritative: false, onlyIfCached: context.onlyIfCached, caller };
  const resolution = await run(() => host.resolver.resolve(handle, options), 0);
  if (resolution.kind === 'entry') return resolution;
  const { status, members, retryAfter } = resolution.refused;
  const responseCode = members['responseCode'] as number;
  throw refusalError({ status, members, responseCode, retryAfter }, 'read');
}

async function sizedValuesOf({ run }: V2Request, { entry }: FromEntry): Promise<SizedValues | undefined> {
  if (entry.kind === 'not-found') return undefined;
  const chars = entry.values.length;
  return { values: await readValues(entry, run), chars };
}

/** Returns the ETag of a record that is not sent; `withHidden`: a digest to compare with that of the same record. */
export const etagOfValues = (
  { run }: V2Request,
  { values, chars }: SizedValues,
  options: { withHidden?: boolean } = {},
): string | Promise<string> => run(renderEtag(values, undefined, options), chars);

/**
 * Creates a strong ETag from the meaning of the values. Server order and timestamps do not affect it, so a
 * write's ETag is known before the record is read back. `shown` receives the JSON of each visible value, because
 * both need its bytes.
 */
export function* renderEtag(
  values: readonly HandleValue[],
  shown?: string[],
  options: { withHidden?: boolean } = {},
): Steps<string> {
  const digest = createHash('sha256');
  // The JSON of a list of texts, in pieces: hashing that of a long record takes several milliseconds.
  let text = '[';
  for (const [at, value] of (yield* visibleValues(values, options)).entries()) {
    const decoded = yield* decodeValue(value);
    shown?.push(yield* writeV2Value(decoded));
    text += at === 0 ? '"' : ',"';
    for (const piece of yield* canonicalForm(decoded)) {
      text += JSON.stringify(piece).slice(1, -1);
      if (text.length < MIN_HASHED_CHARS) continue;
      digest.update(text);
      text = '';
      yield;
    }
    text += '"';
    yield;
  }
  return etagOfDigest(digest.update(`${text}]`).digest('base64url'), 'identity');
}

/** Minimum characters to hash together, because a call costs as much as hashing hundreds. */
const MIN_HASHED_CHARS = 16 * 1024;

/** Evaluates preconditions for the ETag that the caller sees, if any. @throws ServiceError PRECONDITION_FAILED */
export function assertPreconditions(
  { method = '', headers }: V2Request['req'],
  etag: string | undefined,
): Exclude<Verdict, 'failed'> {
  const etags = etag === undefined ? [] : [etag];
  const verdict = evaluatePreconditions(headers, { method, exists: etag !== undefined, etags });
  if (verdict !== 'failed') return verdict;
  throw new ServiceError('PRECONDITION_FAILED', { detail: describeFailure(headers, etag) });
}

function describeFailure(headers: V2Request['req']['headers'], etag: string | undefined): string {
  const conditions = conditionsOf(headers).map((name) => `${name}: ${String(headers[name])}`);
  if (headers['if-match'] === undefined && headers['if-unmodified-since'] !== undefined)
    return 'records have no modification date: use If-Match with an ETag instead of If-Unmodified-Since';
  const exists = weakTagProblem(headers) ?? `the handle exists with the ETag ${etag}`;
  const state = etag === undefined ? 'the handle does not exist' : exists;
  return `${conditions.join(', ')}, but ${state}`;
}
