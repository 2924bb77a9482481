// PUT and DELETE of a handle. PUT creates the record (201) or replaces it by exactly this list of values (204).
import { ServiceError } from '../errors.js';
import { contextOf } from '../http/context.js';
import { isCreateOnly } from '../http/preconditions.js';
import { assertJson, withJson } from './body.js';
import { assertPreconditions, validatorsOf } from './conditions.js';
import type { V2Call, V2Deps } from './deps.js';
import { createRecord, replaceRecord, runFenced } from './fenced-write.js';
import { buildRecord } from './ownership.js';
import { type CallerRecord, readAsCaller } from './read.js';
import type { HandleResource } from './resource.js';
import { PRIVATE, send } from './response.js';
import { readInputs } from './translation/schema.js';
import type { V2Input } from './translation/value.js';
import { planWrite } from './translation/write-plan.js';
import { type WrittenRecord, sendWritten } from './write-response.js';

/** Tries when writers outside the lock create and delete the handle between our read and our write. */
const MAX_TRIES = 3;

interface PutTarget extends HandleResource {
  inputs: readonly V2Input[];
}

interface LockedPut extends PutTarget {
  /** See LockGrant. */
  assertHeld: () => void;
}

export async function putHandle(deps: V2Deps, call: V2Call, resource: HandleResource): Promise<void> {
  const { req, res } = call;
  contextOf(res).result = 'write';
  assertJson(req);
  await withJson(deps, req, async (json) => {
    const target = { ...resource, inputs: await deps.run(readInputs(json), Infinity) };
    await (isCreateOnly(req) ? putNew(deps, call, target) : putLocked(deps, call, target));
  });
}

/** `If-None-Match: *` needs no read and no lock: the Handle server itself creates only where nothing is. */
async function putNew(deps: V2Deps, call: V2Call, target: PutTarget): Promise<void> {
  const written = await create(deps, call, target);
  if (written !== undefined) await sendWritten(deps, call, { ...written, isLocked: false });
  else throw new ServiceError('CONDITION_FAILED', { detail: 'if-none-match: *, but the handle exists' });
}

/**
 * A handle that does not exist is created without the lock: there the Handle server decides. Otherwise the response is sent
 * under the lock, so that its ETag is that of this write.
 */
async function putLocked(deps: V2Deps, call: V2Call, target: PutTarget): Promise<void> {
  await deps.lock(target.handle, {
    req: call.req,
    read: () => readCurrent(deps, call, target.handle),
    async unlocked(current) {
      if (current !== undefined) return undefined;
      const written = await create(deps, call, target);
      if (written !== undefined) await sendWritten(deps, call, { ...written, isLocked: false });
      return written;
    },
    async work(read, assertHeld) {
      // Created by another writer since it was read.
      const current = read ?? (await readCurrent(deps, call, target.handle));
      const written = await createOrReplace(deps, call, { ...target, current, assertHeld });
      await sendWritten(deps, call, written);
      return written;
    },
  });
}

async function createOrReplace(
  deps: V2Deps,
  call: V2Call,
  target: LockedPut & { current: CallerRecord | undefined },
): Promise<WrittenRecord> {
  let { current } = target;
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    if (tries > 0) current = await readCurrent(deps, call, target.handle);
    const written = await (current === undefined
      ? create(deps, call, target)
      : replace(deps, call, { ...target, current }));
    if (written !== undefined) return written;
  }
  throw new ServiceError('BUSY', { detail: 'concurrent modification' });
}

/** The record as the caller can read it, when the preconditions hold for it. */
async function readCurrent(
  { records, run }: V2Deps,
  { req, login }: V2Call,
  handle: string,
): Promise<CallerRecord | undefined> {
  const current = await readAsCaller(records, login, { handle, authoritative: true });
  assertPreconditions(req, current && (await run(validatorsOf(current.values), Infinity)));
  return current;
}

/** Undefined when the handle exists. */
async function create(
  deps: V2Deps,
  { login }: V2Call,
  { handle, rawHandle, inputs }: PutTarget,
): Promise<WrittenRecord | undefined> {
  const values = await buildRecord(deps, { inputs, handle, login, current: [] });
  const outcome = await createRecord(deps, { login, handle, values });
  return outcome === 'created' ? { handle, rawHandle, isNew: true, values } : undefined;
}

/** Undefined when the handle was deleted since it was read. */
async function replace(
  deps: V2Deps,
  { login }: V2Call,
  { handle, rawHandle, inputs, current, assertHeld }: LockedPut & { current: CallerRecord },
): Promise<WrittenRecord | undefined> {
  const values = await buildRecord(deps, { inputs, handle, login, current: current.values });
  const planning = planWrite({ current: current.values, isFull: current.isFull, next: values });
  const plan = await deps.run(planning, Infinity);
  try {
    const outcome = await replaceRecord(deps, { login, handle, plan, assertHeld });
    return { handle, rawHandle, isNew: outcome === 'created', values };
  } catch (failure) {
    const isGone = failure instanceof ServiceError && failure.code === 'V2_NOT_FOUND';
    if (isGone && plan.kind === 'by-index') return undefined;
    throw failure;
  }
}

/** Refused unless deletion is on. A handle that does not exist is 412 or 404 before it is 403. */
export async function deleteHandle(deps: V2Deps, call: V2Call, { handle }: HandleResource): Promise<void> {
  const { req, res, login } = call;
  contextOf(res).result = 'write';
  const read = async (): Promise<void> => {
    const current = await readCurrent(deps, call, handle);
    if (current === undefined) throw new ServiceError('V2_NOT_FOUND');
  };
  if (!deps.mayDelete(handle)) {
    await read();
    throw new ServiceError('V2_NO_DELETE', { detail: 'the operator of this service has turned it off' });
  }
  const { authorization } = login;
  const work = (_read: unknown, beforeSend: () => void) =>
    runFenced(deps, handle, [() => deps.records.remove(handle, { authorization, beforeSend })]);
  await deps.lock(handle, { req, read, work });
  send(res, { status: 204, headers: PRIVATE });
}
