// GET and HEAD of a handle, and the two ways to read a record: as the caller, or the public values from the cache.
import type { Request, Response } from 'express';
import { ServiceError } from '../errors.js';
import { writeJson } from '../handle/json.js';
import { RESPONSE_CODE, isElsewhere } from '../handle/response-codes.js';
import type { HandleValue } from '../handle/value.js';
import { cacheHeaders } from '../http/cache-headers.js';
import { contextOf } from '../http/context.js';
import { resultOf } from '../record/record-reply.js';
import { type ParsedValues, readValues } from '../resolver/parsed-records.js';
import type { FromEntry } from '../resolver/resolution.js';
import type { Steps } from '../time-slicer.js';
import { readVisible } from '../upstream/record-client.js';
import { assertPreconditions, validatorHeaders, validatorsOf } from './conditions.js';
import type { V2Call, V2Deps } from './deps.js';
import type { Login } from './login.js';
import { refusalError } from './refusal.js';
import type { HandleResource } from './resource.js';
import { JSON_TYPE, PRIVATE, send } from './response.js';
import { toV2 } from './translation/translate.js';

/** With the login of the caller, past the cache. */
export async function getHandle(
  deps: V2Deps,
  { req, res, login }: V2Call,
  { handle }: HandleResource,
): Promise<void> {
  contextOf(res).result = 'bypass';
  const record = await readAsCaller(deps.records, login, { handle, authoritative: false });
  await sendValues(deps, { req, res }, { values: record?.values, headers: PRIVATE });
}

/** Without a login, from the shared cache. */
export async function getPublicHandle(
  deps: V2Deps,
  req: Request,
  res: Response,
  { handle }: HandleResource,
): Promise<void> {
  const resolution = await resolvePublic(deps, handle);
  contextOf(res).result = resultOf(resolution, { authoritative: false });
  if (resolution.stale) deps.onStale(resolution.stale);
  const { freshness, now } = deps;
  const headers = cacheHeaders({ resolution, authoritative: false, now: now(), freshness });
  await sendValues(deps, { req, res }, { values: await deps.run(valuesOf(resolution), Infinity), headers });
}

/** A handle without visible values is 404 for a read, although it exists for preconditions. */
async function sendValues(
  { run }: Pick<V2Deps, 'run'>,
  { req, res }: Pick<V2Call, 'req' | 'res'>,
  { values, headers }: { values: readonly HandleValue[] | undefined; headers: Record<string, string> },
): Promise<void> {
  const validators = values && (await run(validatorsOf(values), Infinity));
  const verdict = assertPreconditions(req, validators);
  const shown = await run(toV2(values ?? []), Infinity);
  if (validators === undefined || shown.length === 0) throw new ServiceError('V2_NOT_FOUND');
  const all = { ...headers, ...validatorHeaders(validators) };
  if (verdict === 'not-modified') send(res, { status: 304, headers: all });
  else send(res, { status: 200, headers: all, contentType: JSON_TYPE, body: writeJson(shown) });
}

export interface CallerRecord {
  values: HandleValue[];
  /** False when the caller can read the public values only. */
  isFull: boolean;
}

/**
 * Reads a record with the caller's credentials; undefined when the handle does not exist.
 *
 * @throws ServiceError when the Handle server refuses or fails
 */
export async function readAsCaller(
  records: V2Deps['records'],
  { authorization }: Login,
  { handle, authoritative }: { handle: string; authoritative: boolean },
): Promise<CallerRecord | undefined> {
  const answer = await readVisible(records, handle, { authorization, authoritative });
  if (answer.values !== undefined) return { values: answer.values, isFull: answer.isFull };
  if (answer.responseCode === RESPONSE_CODE.handleNotFound) return undefined;
  // Before a write: there is nothing to replace, and the server itself refuses a foreign prefix.
  if (isElsewhere(answer.responseCode) && authoritative) return undefined;
  throw refusalError(answer, 'read');
}

/**
 * The public values of a record through the shared cache; undefined when the handle does not exist.
 *
 * @throws ServiceError when the Handle server refuses or fails
 */
export async function readPublic(
  deps: Pick<V2Deps, 'resolver' | 'run'>,
  handle: string,
): Promise<ParsedValues | undefined> {
  return deps.run(valuesOf(await resolvePublic(deps, handle)), Infinity);
}

async function resolvePublic({ resolver }: Pick<V2Deps, 'resolver'>, handle: string): Promise<FromEntry> {
  const resolution = await resolver.resolve(handle, { authoritative: false });
  if (resolution.kind === 'entry') return resolution;
  const { status, members, retryAfter } = resolution.refused;
  const responseCode = members['responseCode'] as number;
  throw refusalError({ status, members, responseCode, retryAfter }, 'read');
}

function* valuesOf({ entry }: FromEntry): Steps<ParsedValues | undefined> {
  return entry.kind === 'not-found' ? undefined : yield* readValues(entry);
}
