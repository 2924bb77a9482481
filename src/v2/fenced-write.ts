// Writes to the Handle server under a fence. Settling the fence waits until no instance serves the old record.
import { ServiceError } from '../errors.js';
import type { WriteOutcome } from '../handle/outcome.js';
import { RESPONSE_CODE } from '../handle/response-codes.js';
import type { HandleValue } from '../handle/value.js';
import { combineOutcomes, judgeWrite, settle, withoutRetryAfter } from '../upstream/write-outcome.js';
import type { RecordAnswer } from '../upstream/reply.js';
import { recordEtag } from './conditions.js';
import type { V2Deps } from './deps.js';
import type { Login } from './login.js';
import { readAsCaller } from './read.js';
import { refusalError } from './refusal.js';
import type { WritePlan } from './translation/write-plan.js';

type FencedWriteDeps = Pick<V2Deps, 'records' | 'resolver' | 'run'>;

interface WriteTarget {
  login: Login;
  handle: string;
}

interface LockedTarget extends WriteTarget {
  /** See LockGrant. */
  assertHeld: () => void;
}

export interface RecordWrite extends WriteTarget {
  values: readonly HandleValue[];
}

type Step = () => Promise<RecordAnswer>;

/**
 * Creates a record unless the handle exists; the server checks and writes in one step. When the outcome is
 * unknown, the record is read back, and nothing is sent a second time.
 *
 * @throws ServiceError when the write was refused, or its outcome stays unknown
 */
export async function createRecord(deps: FencedWriteDeps, write: RecordWrite): Promise<'created' | 'exists'> {
  const { login, handle, values } = write;
  const { authorization } = login;
  const fence = await deps.resolver.fence(handle);
  const attempt = await attemptStep(() =>
    deps.records.put(handle, { authorization, values, overwrite: false }),
  );
  const isStored = attempt.outcome === 'unknown' && (await holdsValues(deps, write).catch(() => false));
  await settle(fence, isStored ? 'changed' : attempt.outcome);
  if (isStored || attempt.kind === 'done') return 'created';
  const isRefused = attempt.kind === 'refused' && attempt.outcome !== 'unknown';
  if (isRefused && attempt.answer.responseCode === RESPONSE_CODE.handleExists) return 'exists';
  throw errorOf(attempt, attempt.outcome);
}

/** Whether the handle holds exactly these values, as far as the caller can read them. */
export async function holdsValues(
  { records, run }: Pick<V2Deps, 'records' | 'run'>,
  { login, handle, values }: RecordWrite,
): Promise<boolean> {
  const record = await readAsCaller(records, login, { handle, authoritative: true });
  if (record === undefined) return false;
  return (await run(recordEtag(record.values), Infinity)) === (await run(recordEtag(values), Infinity));
}

/** Replaces a record; `created` when it had been deleted since it was read. */
export async function replaceRecord(
  deps: FencedWriteDeps,
  target: LockedTarget & { plan: WritePlan },
): Promise<'created' | 'updated'> {
  const { handle, plan } = target;
  const last = await runFenced(deps, handle, stepsOf(deps, target));
  return last?.status === 201 && plan.kind === 'whole' ? 'created' : 'updated';
}

function stepsOf(
  { records }: Pick<FencedWriteDeps, 'records'>,
  { login, handle, plan, assertHeld: beforeSend }: LockedTarget & { plan: WritePlan },
): Step[] {
  const given = { authorization: login.authorization, beforeSend };
  if (plan.kind === 'whole') {
    return [() => records.put(handle, { ...given, values: plan.values, overwrite: true })];
  }
  const { add, change, remove } = plan;
  const putValues = (values: readonly HandleValue[], overwrite: boolean): Step[] =>
    values.length > 0 ? [() => records.putValues(handle, { ...given, values, overwrite })] : [];
  const removeValues: Step = () => records.remove(handle, { ...given, indexes: remove });
  return [...putValues(add, false), ...putValues(change, true), ...(remove.length > 0 ? [removeValues] : [])];
}

/**
 * Sends the steps of a write until one is refused, and settles the fence by the combined outcome.
 *
 * @throws ServiceError for the first step that was not carried out
 */
export async function runFenced(
  { resolver }: Pick<FencedWriteDeps, 'resolver'>,
  handle: string,
  steps: readonly Step[],
): Promise<RecordAnswer | undefined> {
  const fence = await resolver.fence(handle);
  const attempts: Attempt[] = [];
  for (const step of steps) {
    const attempt = await attemptStep(step);
    attempts.push(attempt);
    if (attempt.kind !== 'done') break;
  }
  const outcome = combineOutcomes(attempts.map((attempt) => attempt.outcome));
  await settle(fence, outcome);
  const last = attempts.at(-1);
  if (last !== undefined && last.kind !== 'done') throw errorOf(last, outcome);
  return last?.answer;
}

type Attempt = { outcome: WriteOutcome } & (
  { kind: 'done' | 'refused'; answer: RecordAnswer } | { kind: 'failed'; failure: unknown }
);

async function attemptStep(step: Step): Promise<Attempt> {
  try {
    const answer = await step();
    return { kind: answer.status < 300 ? 'done' : 'refused', outcome: judgeWrite(answer), answer };
  } catch (failure) {
    return { kind: 'failed', outcome: judgeWrite({ failure }), failure };
  }
}

function errorOf(attempt: Exclude<Attempt, { kind: 'done' }>, outcome: WriteOutcome): unknown {
  if (attempt.kind !== 'failed') return refusalError(attempt.answer, 'write');
  const { failure } = attempt;
  if (outcome === 'unchanged') return failure;
  if (!(failure instanceof ServiceError) || failure.code !== 'UPSTREAM_UNREACHABLE')
    return withoutRetryAfter(failure);
  // The request may have arrived: for the caller this is the same as no response in time.
  const detail = 'the connection was lost; it is unknown whether the write was carried out';
  const { diagnosis } = failure;
  return new ServiceError('UPSTREAM_TIMEOUT', { detail, diagnosis, cause: failure, retryAfterMs: 'never' });
}
