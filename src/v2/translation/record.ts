// Translates whole records in both directions, and plans the requests that replace a record.
import { ServiceError } from '../../errors.js';
import { writeJson } from '../../handle/json.js';
import { stepBytesOfValueData } from '../../handle/value-data.js';
import {
  DEFAULT_TTL_SECONDS,
  type HandleValue,
  type ValueReference,
  lastFourPermissions,
} from '../../handle/value.js';
import {
  GROUP_SIZE,
  SMALL_CHARS,
  type Steps,
  flatMapGroups,
  groupsOf,
  mapInSteps,
  mapLongInSteps,
  sortInSteps,
} from '../../time-slicer.js';
import { permissionsToSend, showPermissions, showReferences, showTtl } from './attributes.js';
import {
  ADMIN_TYPE,
  type V2Input,
  decodePrintable,
  isHidden,
  isStructured,
  recordDataOfBytes,
  stepParseData,
} from './data.js';

/** Returns a value's `parsed_data` if it is a text. */
export function* parsedTextOf({ type, data }: HandleValue): Steps<string | undefined> {
  return isStructured(type) ? undefined : decodePrintable(yield* stepBytesOfValueData(data));
}

/** Returns the values visible in v2, or `withHidden` all, sorted by index. */
export function* visibleValues(
  values: readonly HandleValue[],
  { withHidden = false } = {},
): Steps<HandleValue[]> {
  const visible = yield* flatMapGroups(values, (group) =>
    group.filter((value) => withHidden || !isHidden(value)),
  );
  return yield* sortInSteps(visible, (one, other) => one.index - other.index);
}

/** A value with the members that both of its texts contain, as v2 shows them. */
interface DecodedValue {
  value: HandleValue;
  bytes: Buffer;
  /** The bytes in base64. */
  data: string;
  refs: string[];
}

export function* decodeValue(value: HandleValue): Steps<DecodedValue> {
  const bytes = yield* stepBytesOfValueData(value.data);
  if (isLong(bytes)) yield;
  const data = bytes.toString('base64');
  if (isLong(bytes)) yield;
  return { value, bytes, data, refs: yield* showReferences(value.references) };
}

/** Whether each operation on these bytes is a step. */
const isLong = ({ length }: Buffer): boolean => length > SMALL_CHARS;

/** Translates to v2, members in original order. `data`: base64 on one line; `ttl`: an ISO date if `ttl_type` is 1. */
export function* toV2Value({ value, bytes, data, refs }: DecodedValue) {
  const { index, type, timestamp, ttl, permissions } = value;
  return {
    idx: index,
    type,
    parsed_data: yield* stepParseData(type, bytes),
    data,
    ...(typeof timestamp === 'string' && { timestamp }),
    ...showTtl(ttl),
    refs,
    privs: showPermissions(permissions),
  };
}

export function* writeV2Value(decoded: DecodedValue): Steps<string> {
  const shown = yield* toV2Value(decoded);
  if (!isLong(decoded.bytes) && decoded.refs.length <= GROUP_SIZE) return writeJson(shown);
  const members: string[] = [];
  for (const [name, member] of Object.entries(shown)) {
    const pieces = Array.isArray(member) ? yield* writeInPieces(member, writeJson) : [writeJson(member)];
    members.push(`"${name}":${chain(pieces)}`);
    yield;
  }
  return `{${chain(members, ',')}}`;
}

/** As `join`, but without a copy: a copy of a long text takes several milliseconds. */
const chain = (pieces: readonly string[], between = ''): string =>
  pieces.reduce((text, piece) => (text === '' ? piece : text + between + piece), '');

function* writeInPieces(list: readonly unknown[], write: (part: unknown) => string): Steps<string[]> {
  const pieces = yield* flatMapGroups(list, (group) => [`,${write(group).slice(1, -1)}`]);
  return ['[', ...pieces.map((piece, at) => (at === 0 ? piece.slice(1) : piece)), ']'];
}

/** HS_ADMIN value to add to a list without administrators. */
export interface AutomaticAdmin {
  /** Preferred index; if it is taken, the next free index above it is used. */
  index: number;
  /** Administrator to name. */
  admin: ValueReference;
  /** Twelve digits, starting with list_handles. */
  permissions: string;
}

/** Translates a list to values. Assigned indexes avoid those hidden in `current`, the record as the caller sees it. */
export function* toRecord(
  inputs: readonly V2Input[],
  automaticAdmin: AutomaticAdmin,
  current: readonly HandleValue[] = [],
): Steps<HandleValue[]> {
  const hidden = new Set(current.filter(isHidden).map(({ index }) => index));
  const values = yield* mapInSteps(assignIndexes(inputs, hidden), toRecordValue);
  if (values.some(({ type }) => type === ADMIN_TYPE)) return values;
  const taken = new Set([...hidden, ...values.map(({ index }) => index)]);
  return [...values, ...adminsToAdd(automaticAdmin, current, taken)];
}

type IndexedInput = V2Input & { idx: number };

/** Assigns the lowest free indexes in list order, also those of visible stored values, which the list replaces. */
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

/** Returns canonical text for comparison, in pieces, without the timestamp: a PUT without changes keeps the ETag. */
export function* canonicalForm({ value, data, refs }: DecodedValue): Steps<string[]> {
  const { index, type, ttl, permissions } = value;
  const { ttl_type, ttl: life } = showTtl(ttl);
  const start = JSON.stringify([index, type]).slice(0, -1);
  const middle = JSON.stringify([ttl_type, life]).slice(1, -1);
  const digits = JSON.stringify(lastFourPermissions(permissions));
  const list =
    refs.length <= GROUP_SIZE ? [JSON.stringify(refs.toSorted())] : yield* writeSortedInPieces(refs);
  return [`${start},"`, ...groupsOf(data, PIECE_CHARS), `",${middle},`, ...list, `,${digits}]`];
}

function* writeSortedInPieces(texts: readonly string[]): Steps<string[]> {
  const sorted = yield* sortInSteps(texts, (one, other) => (one < other ? -1 : Number(one > other)));
  return yield* writeInPieces(sorted, JSON.stringify);
}

/** Characters of a piece, whose escaping and hashing take a fraction of a millisecond. */
const PIECE_CHARS = 64 * 1024;

/** One atomic PUT of the whole record, or requests by index if the caller cannot read the whole record. */
export type WritePlan =
  | { kind: 'whole'; values: HandleValue[] }
  | {
      kind: 'by-index';
      /** Sent first, with overwrite=false: response code 201 means that an unreadable value has this index. */
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
export function* planWrite(input: PlanInput): Steps<WritePlan> {
  const stored = new Map(input.current.map((value) => [value.index, value]));
  const values = yield* mapLongInSteps(input.next, (value) => toSend(value, stored.get(value.index)));
  return planOf(values.flat(), input);
}

function* toSend(value: HandleValue, before: HandleValue | undefined): Steps<HandleValue | []> {
  if (before === undefined || !(yield* isUnchanged(value, before))) return value;
  // An unchanged hidden value comes from a repeated PUT with the same secret key.
  return isHidden(before) ? [] : restate(before);
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

function* isUnchanged(value: HandleValue, before: HandleValue): Steps<boolean> {
  if (value === before) return true;
  const bytes = yield* stepBytesOfValueData(value.data);
  if (!bytes.equals(yield* stepBytesOfValueData(before.data))) return false;
  return (yield* formWithoutData(value, bytes)) === (yield* formWithoutData(before, bytes));
}

function* formWithoutData(value: HandleValue, bytes: Buffer): Steps<string> {
  const refs = yield* showReferences(value.references);
  return (yield* canonicalForm({ value, bytes, data: '', refs })).join('');
}

/** Rejects a value with a hidden value's index. The error is a 400, because the v2 contract has no 409. */
function assertNoCollision(values: readonly HandleValue[], hidden: readonly HandleValue[]): void {
  const taken = new Set(hidden.map(({ index }) => index));
  const collision = values.find(({ index }) => taken.has(index));
  if (collision === undefined) return;
  const detail = `idx ${collision.index}: give another index, or change that value through /api/handles`;
  throw new ServiceError('V2_INDEX_TAKEN', { detail });
}
