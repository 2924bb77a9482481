// Plans the requests that replace a record by a new list and keep the values that v2 does not show.
import { ServiceError } from '../../errors.js';
import type { HandleValue } from '../../handle/value.js';
import type { Steps } from '../../time-slicer.js';
import { canonicalForm, restate } from './translate.js';
import { isHidden } from './value.js';

/** One atomic PUT of the whole record, or requests by index when the caller cannot read all of it. */
export type WritePlan =
  | { kind: 'whole'; values: HandleValue[] }
  | {
      kind: 'by-index';
      /** First, with overwrite=false: response code 201 means that a value which the caller cannot read is there. */
      add: HandleValue[];
      /** Second, with overwrite=true. */
      change: HandleValue[];
      /** Last, so that the record has an HS_ADMIN at every moment. */
      remove: number[];
    };

interface PlanInput {
  /** The stored record, as far as the caller can read it. */
  current: readonly HandleValue[];
  /** Whether `current` is the whole record. */
  isFull: boolean;
  /** The new list, from `toRecord`. */
  next: readonly HandleValue[];
}

/**
 * Hidden values stay. Values that come back as v2 showed them are sent in the server's own form, so that parts
 * of a site or key which the translation drops are not lost.
 *
 * @throws ServiceError V2_INDEX_TAKEN when a new value has the index of a hidden one
 */
export function* planWrite({ current, isFull, next }: PlanInput): Steps<WritePlan> {
  const stored = new Map(current.map((value) => [value.index, value]));
  const hidden = current.filter(isHidden);
  const isUnchanged = (value: HandleValue, before: HandleValue | undefined): before is HandleValue =>
    before !== undefined && canonicalForm(before) === canonicalForm(value);
  const values: HandleValue[] = [];
  for (const value of next) {
    const before = stored.get(value.index);
    if (!isUnchanged(value, before)) values.push(value);
    // A repeated PUT sends the same secret key again: it is the hidden value itself.
    else if (!isHidden(before)) values.push(restate(before));
    yield;
  }
  assertNoCollision(values, hidden);
  if (isFull) return { kind: 'whole', values: [...values, ...hidden.map(restate)] };
  const indexes = new Set(next.map(({ index }) => index));
  return {
    kind: 'by-index',
    add: values.filter(({ index }) => !stored.has(index)),
    change: values.filter(({ index }) => stored.has(index)),
    remove: current
      .filter((value) => !isHidden(value) && !indexes.has(value.index))
      .map(({ index }) => index),
  };
}

/** 400: the v2 contract has no 409. */
function assertNoCollision(values: readonly HandleValue[], hidden: readonly HandleValue[]): void {
  const taken = new Set(hidden.map(({ index }) => index));
  const collision = values.find(({ index }) => taken.has(index));
  if (collision === undefined) return;
  const detail = `idx ${collision.index}: give another index, or change that value through /api/handles`;
  throw new ServiceError('V2_INDEX_TAKEN', { detail });
}
