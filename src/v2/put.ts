// PUT of a handle: creates it (201) or makes it exactly this list of values (204).
import { ServiceError } from '../errors.js';
import { contextOf } from '../http/context.js';
import { requireJson, withJson } from './body.js';
import { demandConditions, isCreateOnly } from './conditions.js';
import type { Call, V2Deps } from './deps.js';
import { planWrite } from './merge.js';
import { makeRecord } from './new-record.js';
import { type CallerRecord, readAs } from './record.js';
import { readInput } from './schema.js';
import type { HandleTarget } from './target.js';
import type { V2Input } from './value.js';
import { createRecord, replaceRecord } from './write.js';
import { type Written, sendWritten } from './written.js';

/** How often a record may come into being between our look and our write before we give up. */
const MAX_TRIES = 3;

type Put = (call: Call, target: HandleTarget) => Promise<void>;

export function createPut(deps: V2Deps): Put {
  return async function put(call, target) {
    const { req, res } = call;
    contextOf(res).result = 'write';
    requireJson(req);
    await withJson(deps, req, async (json) => {
      const inputs = readInput(json);
      await deps.lock(target.handle, async () => {
        const written = await write(deps, call, { ...target, inputs });
        await sendWritten(deps, call, written);
      });
    });
  };
}

async function write(
  deps: V2Deps,
  call: Call,
  wanted: HandleTarget & { inputs: readonly V2Input[] },
): Promise<Written> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const current = await readCurrent(deps, call, wanted);
    const written = await (current === undefined
      ? create(deps, call, wanted)
      : replace(deps, call, { ...wanted, current }));
    if (written !== undefined) return written;
  }
  throw new ServiceError('BUSY', { detail: 'it was created and deleted by others again and again' });
}

/** With `If-None-Match: *` nothing is read: the server itself creates only where nothing is. */
async function readCurrent(
  { records }: V2Deps,
  { req, login }: Call,
  { handle }: HandleTarget,
): Promise<CallerRecord | undefined> {
  if (isCreateOnly(req)) return undefined;
  const current = await readAs(records, login, { handle, authoritative: true });
  demandConditions(req, current?.values);
  return current;
}

/** Undefined: somebody else was faster, and the record is there now. */
async function create(
  deps: V2Deps,
  { req, login }: Call,
  { handle, rawHandle, inputs }: HandleTarget & { inputs: readonly V2Input[] },
): Promise<Written | undefined> {
  const values = await makeRecord(deps, { inputs, handle, login, current: [] });
  const outcome = await createRecord(deps, { login, handle, values });
  if (outcome === 'created') return { handle, rawHandle, isNew: true, values };
  if (!isCreateOnly(req)) return undefined;
  throw new ServiceError('V2_CONDITION_FAILED', { detail: 'if-none-match: *, but the handle exists' });
}

/** Undefined: the handle was deleted since it was read, and there is nothing to change. */
async function replace(
  deps: V2Deps,
  { login }: Call,
  {
    handle,
    rawHandle,
    inputs,
    current,
  }: HandleTarget & {
    inputs: readonly V2Input[];
    current: CallerRecord;
  },
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
