// Writes of a record: fenced, so that both interfaces see the new record as soon as it is acknowledged.
import { ServiceError } from '../errors.js';
import { RESPONSE_CODE } from '../handle/response-codes.js';
import type { HandleValue } from '../handle/value.js';
import { type WriteOutcome, judgeWrite } from '../handle/write-outcome.js';
import type { RecordAnswer } from '../upstream/record-answer.js';
import type { V2Deps } from './deps.js';
import { etagOf } from './etag.js';
import type { Login } from './login.js';
import type { WritePlan } from './merge.js';
import { readAs } from './record.js';
import { refusalOf } from './refusal.js';

export type WriteDeps = Pick<V2Deps, 'records' | 'fence'>;

export interface Write {
  login: Login;
  handle: string;
}

type Step = () => Promise<RecordAnswer>;

/**
 * Creates a record where there is none; the server looks and writes in one step. When nobody can tell
 * what became of it, the record is looked for, and nothing is tried a second time.
 *
 * @throws ServiceError when it was refused, or when it stays unknown whether it was carried out
 */
export async function createRecord(
  { records, fence: raise }: WriteDeps,
  { login, handle, values }: Write & { values: readonly HandleValue[] },
): Promise<'created' | 'exists'> {
  const { authorization } = login;
  const fence = await raise(handle);
  const attempt = await attempted(() => records.put(handle, { authorization, values, overwrite: false }));
  if (attempt.outcome === 'unknown') {
    const isThere = await holds({ records }, { login, handle, values }).catch(() => false);
    await (isThere ? fence.changed() : fence.unknown());
    if (isThere) return 'created';
    throw failureOf(attempt);
  }
  await fence[attempt.outcome]();
  if (attempt.kind === 'done') return 'created';
  if (attempt.kind === 'failed') throw attempt.failure;
  if (attempt.answer.responseCode === RESPONSE_CODE.handleExists) return 'exists';
  throw refusalOf(attempt.answer, 'write');
}

/** Whether the handle holds these very values, as far as the caller may see. */
export async function holds(
  { records }: Pick<V2Deps, 'records'>,
  { login, handle, values }: Write & { values: readonly HandleValue[] },
): Promise<boolean> {
  const record = await readAs(records, login, { handle, authoritative: true });
  return record !== undefined && etagOf(record.values) === etagOf(values);
}

/** Replaces a record. `created`: it had been deleted since it was read. */
export async function replaceRecord(
  deps: WriteDeps,
  { login, handle, plan }: Write & { plan: WritePlan },
): Promise<'created' | 'updated'> {
  const last = await runFenced(deps, handle, stepsOf(deps, { login, handle, plan }));
  return last?.status === 201 && plan.kind === 'whole' ? 'created' : 'updated';
}

function stepsOf({ records }: WriteDeps, { login, handle, plan }: Write & { plan: WritePlan }): Step[] {
  const { authorization } = login;
  if (plan.kind === 'whole') {
    return [() => records.put(handle, { authorization, values: plan.values, overwrite: true })];
  }
  const { add, change, remove } = plan;
  return [
    ...(add.length > 0
      ? [() => records.putValues(handle, { authorization, values: add, overwrite: false })]
      : []),
    ...(change.length > 0
      ? [() => records.putValues(handle, { authorization, values: change, overwrite: true })]
      : []),
    ...(remove.length > 0 ? [() => records.remove(handle, { authorization, indexes: remove })] : []),
  ];
}

/**
 * Takes the steps until one is refused. What was done before stays done, so it is forgotten all the same.
 *
 * @throws ServiceError for the first step that was not done
 */
export async function runFenced(
  { fence: raise }: Pick<WriteDeps, 'fence'>,
  handle: string,
  steps: readonly Step[],
): Promise<RecordAnswer | undefined> {
  const fence = await raise(handle);
  let last: RecordAnswer | undefined;
  for (const step of steps) {
    const attempt = await attempted(step);
    if (attempt.kind === 'done') {
      last = attempt.answer;
      continue;
    }
    await fence[last === undefined || attempt.outcome === 'unknown' ? attempt.outcome : 'changed']();
    throw failureOf(attempt);
  }
  await (last === undefined ? fence.unchanged() : fence.changed());
  return last;
}

/** One step of a write, and what it means for the record. */
type Attempt = { outcome: WriteOutcome } & (
  | { kind: 'done' | 'refused'; answer: RecordAnswer }
  /** No answer came. */
  | { kind: 'failed'; failure: unknown }
);

async function attempted(step: Step): Promise<Attempt> {
  try {
    const answer = await step();
    return { kind: answer.status < 300 ? 'done' : 'refused', outcome: judgeWrite(answer), answer };
  } catch (failure) {
    return { kind: 'failed', outcome: judgeWrite({ failure }), failure };
  }
}

function failureOf(attempt: Exclude<Attempt, { kind: 'done' }>): unknown {
  if (attempt.kind !== 'failed') return refusalOf(attempt.answer, 'write');
  const { failure } = attempt;
  return failure instanceof ServiceError && failure.code === 'UPSTREAM_UNREACHABLE' ? lost(failure) : failure;
}

/** The request was on its way: for the caller that is the same as no answer in time. */
const lost = (cause: unknown): ServiceError =>
  new ServiceError('UPSTREAM_TIMEOUT', {
    detail: 'the connection was lost, and nobody knows whether the write was carried out',
    cause,
  });
