// Translates whole records in both directions, and plans the requests that replace a record.
import { ServiceError } from '../../errors.js';
import { bytesOfValueData } from '../../handle/value-data.js';
import {
  DEFAULT_TTL_SECONDS,
  type HandleValue,
  type ValueReference,
  lastFourPermissions,
} from '../../handle/value.js';
import { type Steps, mapInSteps } from '../../time-slicer.js';
import { permissionsToSend, showPermissions, showReferences, showTtl } from './attributes.js';
import { ADMIN_TYPE, type V2Input, isHidden, parseData, recordDataOfBytes } from './data.js';

/** Returns a value's `parsed_data`, as in `toV2Value`. */
export const parsedDataOf = (value: HandleValue) => parseData(value.type, bytesOfValueData(value.data));

/** Returns the values visible in v2, sorted by index. */
export function visibleValues(values: readonly HandleValue[]): HandleValue[] {
  return values.filter((value) => !isHidden(value)).sort((one, other) => one.index - other.index);
}

/**
 * Translates a value to v2 form, with members in the original service's order. `data` is base64 on one line; `ttl` is
 * an ISO date if `ttl_type` is 1.
 */
export function toV2Value(value: HandleValue, bytes = bytesOfValueData(value.data)) {
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

/** A response value. */
export type V2Value = ReturnType<typeof toV2Value>;

/** HS_ADMIN value to add to a list without administrators. */
export interface AutomaticAdmin {
  /** Preferred index; if it is taken, the next free index above it is used. */
  index: number;
  /** Administrator to name. */
  admin: ValueReference;
  /** Twelve digits, starting with list_handles. */
  permissions: string;
}

/**
 * Translates a list to record values. Assigned indexes avoid those of hidden values in `current`, the stored record as
 * visible to the caller.
 */
export function toRecord(
  inputs: readonly V2Input[],
  automaticAdmin: AutomaticAdmin,
  current: readonly HandleValue[] = [],
): Steps<HandleValue[]> {
  const hidden = new Set(current.filter(isHidden).map(({ index }) => index));
  return mapInSteps(
    () => assignIndexes(inputs, hidden),
    toRecordValue,
    (values) => {
      if (values.some(({ type }) => type === ADMIN_TYPE)) return values;
      const taken = new Set([...hidden, ...values.map(({ index }) => index)]);
      return [...values, ...adminsToAdd(automaticAdmin, current, taken)];
    },
  );
}

type IndexedInput = V2Input & { idx: number };

/**
 * Assigns the lowest free indexes in list order. Reuses the indexes of visible stored
 * values, which the list replaces.
 */
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
 * Returns the administrators to add: those of the stored record, else the automatic one. The original service
 * always adds its automatic one, so a group member who changes a URL locks out all other members.
 */
function adminsToAdd(
  automaticAdmin: AutomaticAdmin,
  current: readonly HandleValue[],
  taken: Set<number>,
): HandleValue[] {
  // `next` only increases, so that thousands of administrators with taken indexes take linear time.
  let next = automaticAdmin.index;
  const freeIndex = (preferred: number): number => {
    while (taken.has(next)) next++;
    const index = taken.has(preferred) ? next : preferred;
    taken.add(index);
    return index;
  };
  const kept = current.filter(({ type }) => type === ADMIN_TYPE);
  if (kept.length > 0) return kept.map((value) => moveTo(freeIndex(value.index), value));
  const { admin, permissions } = automaticAdmin;
  const value = { handle: admin.handle, index: admin.index, permissions };
  const index = freeIndex(automaticAdmin.index);
  return [{ index, type: ADMIN_TYPE, data: { format: 'admin', value }, ttl: DEFAULT_TTL_SECONDS }];
}

/** Returns the stored value itself if it keeps its index, so that it is known to be unchanged. */
const moveTo = (index: number, value: HandleValue): HandleValue =>
  index === value.index ? value : { ...restate(value), index };

/** Strips a stored value's timestamp, to send the value back. */
function restate({ index, type, data, permissions, ttl, references }: HandleValue): HandleValue {
  return {
    index,
    type,
    data,
    ...permissionsToSend(lastFourPermissions(permissions)),
    ttl: ttl ?? DEFAULT_TTL_SECONDS,
    ...(references !== undefined && references.length > 0 && { references }),
  };
}

/**
 * Returns a canonical text for comparison. Omits the timestamp, so that a PUT without changes keeps the ETag.
 */
export function canonicalForm(value: HandleValue, bytes: Buffer): string {
  const { index, type, ttl, references, permissions } = value;
  const data = bytes.toString('base64');
  const { ttl_type, ttl: life } = showTtl(ttl);
  const refs = showReferences(references).sort();
  return JSON.stringify([index, type, data, ttl_type, life, refs, lastFourPermissions(permissions)]);
}

/** One atomic PUT of the whole record, or requests by index if the caller cannot read the whole record. */
export type WritePlan =
  | { kind: 'whole'; values: HandleValue[] }
  | {
      kind: 'by-index';
      /**
       * Sent first, with overwrite=false: response code 201 means that an unreadable value has this index.
       */
      add: HandleValue[];
      /** Sent second, with overwrite=true. */
      change: HandleValue[];
      /** Sent last, so that the record always has an HS_ADMIN. */
      remove: number[];
    };

interface PlanInput {
  /** Stored record as visible to the caller. */
  current: readonly HandleValue[];
  /** Whether `current` is complete. */
  isFull: boolean;
  /** New values, from `toRecord`. */
  next: readonly HandleValue[];
}

/**
 * Plans a write that keeps hidden values. Sends unchanged values in their stored form, because the
 * translation drops parts of sites and keys.
 *
 * @throws ServiceError V2_INDEX_TAKEN if a new value has the index of a hidden value
 */
export function planWrite(input: PlanInput): Steps<WritePlan> {
  const { current, next } = input;
  const withStored = (): [HandleValue, HandleValue | undefined][] => {
    const stored = new Map(current.map((value) => [value.index, value]));
    return next.map((value) => [value, stored.get(value.index)]);
  };
  const toSend = ([value, before]: [HandleValue, HandleValue | undefined]): HandleValue | [] => {
    if (!isUnchanged(value, before)) return value;
    // An unchanged hidden value comes from a repeated PUT with the same secret key.
    return isHidden(before) ? [] : restate(before);
  };
  return mapInSteps(withStored, toSend, (values) => planOf(values.flat(), input));
}

function planOf(values: HandleValue[], { current, isFull, next }: PlanInput): WritePlan {
  const hidden = current.filter(isHidden);
  assertNoCollision(values, hidden);
  if (isFull) return { kind: 'whole', values: [...values, ...hidden.map(restate)] };
  const stored = new Set(current.map(({ index }) => index));
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

function isUnchanged(value: HandleValue, before: HandleValue | undefined): before is HandleValue {
  if (before === undefined) return false;
  if (value === before) return true;
  const bytes = bytesOfValueData(value.data);
  const isSame = value.data === before.data || bytes.equals(bytesOfValueData(before.data));
  return isSame && canonicalForm(value, bytes) === canonicalForm(before, bytes);
}

/** Rejects a value with a hidden value's index. The error is a 400, because the v2 contract has no 409. */
function assertNoCollision(values: readonly HandleValue[], hidden: readonly HandleValue[]): void {
  const taken = new Set(hidden.map(({ index }) => index));
  const collision = values.find(({ index }) => taken.has(index));
  if (collision === undefined) return;
  const detail = `idx ${collision.index}: give another index, or change that value through /api/handles`;
  throw new ServiceError('V2_INDEX_TAKEN', { detail });
}
