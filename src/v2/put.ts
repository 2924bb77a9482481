// PUT of a handle: creates it (201) or makes it exactly this list of values (204).
import { ServiceError } from '../errors.js';
import { contextOf } from '../http/context.js';
import { isCreateOnly } from '../http/preconditions.js';
import { requireJson, withJson } from './body.js';
import { demandConditions } from './conditions.js';
import type { Call, V2Deps } from './deps.js';
import { holderOf } from './login.js';
import { planWrite } from './merge.js';
import { makeRecord } from './new-record.js';
import { type CallerRecord, readAs } from './record.js';
import { readInput } from './schema.js';
import type { HandleTarget } from './target.js';
import type { V2Input } from './value.js';
import { createRecord, replaceRecord } from './write.js';
import { type Written, sendWritten } from './write-response.js';

/** How often a record may come into being between our look and our write before we give up. */
const MAX_TRIES = 3;

type Put = (call: Call, target: HandleTarget) => Promise<void>;

interface Wanted extends HandleTarget {
  inputs: readonly V2Input[];
}

export function createPut(deps: V2Deps): Put {
  return async function put(call, target) {
    const { req, res } = call;
    contextOf(res).result = 'write';
    requireJson(req);
    await withJson(deps, req, async (json) => {
      const wanted = { ...target, inputs: readInput(json) };
      await (isCreateOnly(req) ? createOnly(deps, call, wanted) : createOrReplace(deps, call, wanted));
    });
  };
}

/** With `If-None-Match: *` nothing is read or locked: the server itself creates only where nothing is. */
async function createOnly(deps: V2Deps, call: Call, wanted: Wanted): Promise<void> {
  const written = await create(deps, call, wanted);
  if (written !== undefined) await sendWritten(deps, call, { ...written, isHeld: false });
  else throw new ServiceError('CONDITION_FAILED', { detail: 'if-none-match: *, but the handle exists' });
}

function createOrReplace(deps: V2Deps, call: Call, wanted: Wanted): Promise<void> {
  return deps.lock(wanted.handle, {
    holder: holderOf(call.login),
    read: () => readCurrent(deps, call, wanted),
    work: async (current) => {
      await sendWritten(deps, call, await write(deps, call, { ...wanted, current }));
    },
  });
}

async function write(
  deps: V2Deps,
  call: Call,
  wanted: Wanted & { current: CallerRecord | undefined },
): Promise<Written> {
  let { current } = wanted;
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    if (tries > 0) current = await readCurrent(deps, call, wanted);
    const written = await (current === undefined
      ? create(deps, call, wanted)
      : replace(deps, call, { ...wanted, current }));
    if (written !== undefined) return written;
  }
  throw new ServiceError('BUSY', { detail: 'it was created and deleted by others again and again' });
}

/** What the caller sees of the record, when the conditions hold for it. */
async function readCurrent(
  { records }: V2Deps,
  { req, login }: Call,
  { handle }: HandleTarget,
): Promise<CallerRecord | undefined> {
  const current = await readAs(records, login, { handle, authoritative: true });
  demandConditions(req, current?.values);
  return current;
}

/** Undefined: the record is there already. */
async function create(
  deps: V2Deps,
  { login }: Call,
  { handle, rawHandle, inputs }: Wanted,
): Promise<Written | undefined> {
  const values = await makeRecord(deps, { inputs, handle, login, current: [] });
  const outcome = await createRecord(deps, { login, handle, values });
  return outcome === 'created' ? { handle, rawHandle, isNew: true, values } : undefined;
}

/** Undefined: the handle was deleted since it was read, and there is nothing to change. */
async function replace(
  deps: V2Deps,
  { login }: Call,
  { handle, rawHandle, inputs, current }: Wanted & { current: CallerRecord },
): Promise<Written | undefined> {
  const values = await makeRecord(deps, { inputs, handle, login, current: current.values });
  const plan = planWrite({ current: current.values, isFull: current.isFull, next: values });
  const replaced = replaceRecord(deps, { login, handle, plan });
  const outcome = await (plan.kind === 'whole' ? replaced : replaced.catch(goneOrThrow));
  if (outcome === 'gone') return undefined;
  return { handle, rawHandle, isNew: outcome === 'created', values };
}

function goneOrThrow(failure: unknown): 'gone' {
  if (failure instanceof ServiceError && failure.code === 'V2_NOT_FOUND') return 'gone';
  throw failure;
}
