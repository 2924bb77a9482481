// Whole records in both directions, and the requests that replace a record by a new list.
import { ServiceError } from '../../errors.js';
import { type HandleValue, type ValueReference, lastFourPermissions } from '../../handle/value.js';
import type { Steps } from '../../time-slicer.js';
import {
  DEFAULT_TTL_SECONDS,
  permissionsToSend,
  showPermissions,
  showReferences,
  showTtl,
} from './attributes.js';
import {
  ADMIN_TYPE,
  type ParsedData,
  type V2Input,
  type V2Value,
  bytesOfRecordData,
  isHidden,
  parseData,
  recordDataOfBytes,
} from './data.js';

/** The values in v2 form, sorted by index, without HS_SECKEY. */
export function* toV2(values: readonly HandleValue[]): Steps<V2Value[]> {
  const shown: V2Value[] = [];
  for (const value of visibleValues(values)) {
    shown.push(toV2Value(value));
    yield;
  }
  return shown;
}

/** The `parsed_data` of a value, as `toV2` shows it. */
export const parsedDataOf = (value: HandleValue): ParsedData =>
  parseData(value.type, bytesOfRecordData(value));

/** The values that v2 shows, sorted by index. */
export function visibleValues(values: readonly HandleValue[]): HandleValue[] {
  return values.filter((value) => !isHidden(value)).sort((one, other) => one.index - other.index);
}

/** A value in v2 form; the members have the order of the original service. */
export function toV2Value(value: HandleValue, bytes = bytesOfRecordData(value)): V2Value {
  const { index, type, timestamp, ttl, references, permissions } = value;
  return {
    idx: index,
    type,
    parsed_data: parseData(type, bytes),
    data: bytes.toString('base64'),
    ...(typeof timestamp === 'string' && { timestamp }),
    ...showTtl(ttl),
    refs: showReferences(references),
    privs: showPermissions(permissions),
  };
}

/** The HS_ADMIN value that is added to a list without one. */
export interface AutomaticAdmin {
  /** Preferred index; if it is taken, the next free index above it is used. */
  index: number;
  /** The administrator it names. */
  admin: ValueReference;
  /** Twelve digits, list_handles first. */
  permissions: string;
}

interface TranslationContext {
  automaticAdmin: AutomaticAdmin;
  /** The stored record, as far as the caller may read it; empty for a new handle. */
  current?: readonly HandleValue[];
}

/** Translates a list to the values of a record. Assigned indexes avoid those of hidden values in `current`. */
export function* toRecord(
  inputs: readonly V2Input[],
  { automaticAdmin, current = [] }: TranslationContext,
): Steps<HandleValue[]> {
  const hidden = new Set(current.filter(isHidden).map(({ index }) => index));
  const values: HandleValue[] = [];
  for (const input of assignIndexes(inputs, hidden)) {
    values.push(toRecordValue(input));
    yield;
  }
  if (values.some(({ type }) => type === ADMIN_TYPE)) return values;
  const taken = new Set([...hidden, ...values.map(({ index }) => index)]);
  return [...values, ...adminsToAdd({ automaticAdmin, current, taken })];
}

type IndexedInput = V2Input & { idx: number };

/** Assigns the lowest free indexes in list order. Indexes of visible stored values are free: the list replaces them. */
function assignIndexes(inputs: readonly V2Input[], hidden: ReadonlySet<number>): IndexedInput[] {
  const taken = new Set([...hidden, ...inputs.flatMap(({ idx }) => (idx === undefined ? [] : [idx]))]);
  let next = 1;
  return inputs.map((input) => {
    if (input.idx !== undefined) return { ...input, idx: input.idx };
    while (taken.has(next)) next++;
    return { ...input, idx: next++ };
  });
}

const toRecordValue = ({ idx, type, data, ttl, references, permissions }: IndexedInput): HandleValue => ({
  index: idx,
  type,
  data: recordDataOfBytes(type, data),
  ...permissionsToSend(permissions),
  ttl,
  ...(references.length > 0 && { references }),
});

/**
 * A record keeps its administrators. The original service replaces them by its automatic one: there, a member of a
 * group who changes a URL locks out the others.
 */
function adminsToAdd({
  automaticAdmin,
  current,
  taken,
}: Required<TranslationContext> & { taken: Set<number> }): HandleValue[] {
  // Only increases: the indexes of thousands of administrators may be taken.
  let next = automaticAdmin.index;
  const place = (preferred: number): number => {
    while (taken.has(next)) next++;
    const index = taken.has(preferred) ? next : preferred;
    taken.add(index);
    return index;
  };
  const kept = current.filter(({ type }) => type === ADMIN_TYPE);
  if (kept.length > 0) return kept.map((value) => ({ ...restate(value), index: place(value.index) }));
  const { admin, permissions } = automaticAdmin;
  const value = { handle: admin.handle, index: admin.index, permissions };
  const index = place(automaticAdmin.index);
  return [{ index, type: ADMIN_TYPE, data: { format: 'admin', value }, ttl: DEFAULT_TTL_SECONDS }];
}

/** A stored value in the form in which it is sent back: without a timestamp. */
export function restate({ index, type, data, permissions, ttl, references }: HandleValue): HandleValue {
  return {
    index,
    type,
    data,
    ...permissionsToSend(permissions),
    ttl: ttl ?? DEFAULT_TTL_SECONDS,
    ...(references !== undefined && references.length > 0 && { references }),
  };
}

/** A text that is equal for equal values. It omits the timestamp, so that a PUT that changes nothing keeps the ETag. */
export function canonicalForm(value: HandleValue, bytes = bytesOfRecordData(value)): string {
  const { index, type, ttl, references, permissions } = value;
  const data = bytes.toString('base64');
  const { ttl_type, ttl: life } = showTtl(ttl);
  const refs = showReferences(references).sort();
  return JSON.stringify([index, type, data, ttl_type, life, refs, lastFourPermissions(permissions)]);
}

/** One atomic PUT of the whole record, or requests by index when the caller cannot read all of it. */
export type WritePlan =
  | { kind: 'whole'; values: HandleValue[] }
  | {
      kind: 'by-index';
      /** Sent first, with overwrite=false: response code 201 means that the index has a value that the caller cannot read. */
      add: HandleValue[];
      /** Sent second, with overwrite=true. */
      change: HandleValue[];
      /** Sent last, so that the record has an HS_ADMIN at every moment. */
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
 * Keeps hidden values. A value that the client returns unchanged is sent in its stored form, so that parts of a
 * site or key that the translation drops are not lost.
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
    // A repeated PUT sends the same secret key again, which is the hidden value itself.
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

/** Rejects a value with the index of a hidden one. The error is 400, because the v2 contract has no 409. */
function assertNoCollision(values: readonly HandleValue[], hidden: readonly HandleValue[]): void {
  const taken = new Set(hidden.map(({ index }) => index));
  const collision = values.find(({ index }) => taken.has(index));
  if (collision === undefined) return;
  const detail = `idx ${collision.index}: give another index, or change that value through /api/handles`;
  throw new ServiceError('V2_INDEX_TAKEN', { detail });
}
