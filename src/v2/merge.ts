// Plans the write that turns a record into a new list without losing what v2 does not show.
import { ServiceError } from '../errors.js';
import type { HandleValue } from '../handle/value.js';
import { canonicalForm } from './etag.js';
import { restated } from './to-upstream.js';
import { isHidden } from './value.js';

/** One atomic PUT of the whole record, or steps by index when it could not be read in full. */
export type WritePlan =
  | { kind: 'whole'; values: HandleValue[] }
  | {
      kind: 'by-index';
      /** First, with overwrite=false: code 201 means that a value nobody could see is there. */
      add: HandleValue[];
      /** Then, with overwrite=true. */
      change: HandleValue[];
      /** Last, so that an HS_ADMIN is there all the time. */
      remove: number[];
    };

export interface MergeInput {
  /** What upstream holds, as far as the caller could read it; empty for a new handle. */
  current: readonly HandleValue[];
  /**
   * Whether that is everything. It is after a read with `publicOnly=false` that succeeded: a server
   * refuses the whole question when one value may not be seen.
   */
  isFull: boolean;
  /** The new list, from `toUpstream`. */
  next: readonly HandleValue[];
}

/**
 * The way to write the list. Hidden values stay as they are. So do values that come back as they were
 * shown, in the server's own form: what our reading of a site or a key leaves out is not lost.
 *
 * @throws ServiceError V2_INDEX_TAKEN when a value stands where a hidden one is
 */
export function planWrite({ current, isFull, next }: MergeInput): WritePlan {
  const before = new Map(current.map((value) => [value.index, value]));
  const hidden = current.filter(isHidden);
  const list = next.map((value) => unchangedOr(value, before.get(value.index)));
  const ours = list.filter((value) => !isKept(value, before.get(value.index)));
  refuseCollisions(ours, hidden);
  if (isFull) return { kind: 'whole', values: [...ours, ...hidden.map(restated)] };
  const indexes = new Set(next.map(({ index }) => index));
  return {
    kind: 'by-index',
    add: ours.filter(({ index }) => !before.has(index)),
    change: ours.filter(({ index }) => before.has(index)),
    remove: current
      .filter((value) => !isHidden(value) && !indexes.has(value.index))
      .map(({ index }) => index),
  };
}

const unchangedOr = (value: HandleValue, before: HandleValue | undefined): HandleValue =>
  before !== undefined && canonicalForm(before) === canonicalForm(value) ? restated(before) : value;

/** A secret key sent once more, as a repeated PUT does, is the hidden value itself. */
const isKept = (value: HandleValue, before: HandleValue | undefined): boolean =>
  before !== undefined && isHidden(before) && canonicalForm(before) === canonicalForm(value);

/** 400, because v2 has no 409: nothing is overwritten that the caller did not see. */
function refuseCollisions(values: readonly HandleValue[], hidden: readonly HandleValue[]): void {
  const taken = new Set(hidden.map(({ index }) => index));
  const collision = values.find(({ index }) => taken.has(index));
  if (collision === undefined) return;
  const detail = `idx ${collision.index}: give another index, or change that value through /api/handles`;
  throw new ServiceError('V2_INDEX_TAKEN', { detail });
}
