// Makes the record-interface values of a v2 list: indexes given out, an administrator among them.
import type { HandleValue, ValueReference } from '../handle/value.js';
import { permissionsToSend } from './privs.js';
import { dataToSend } from './stored-data.js';
import { DEFAULT_TTL_SECONDS } from './ttl.js';
import { ADMIN_TYPE, type V2Input, isHidden } from './value.js';

/** The HS_ADMIN value that is added where a list has none. */
export interface AutomaticAdmin {
  /** Where it goes; the next free index above when taken. */
  index: number;
  /** Whom it names. */
  admin: ValueReference;
  /** Twelve digits, list_handles first. */
  permissions: string;
}

export interface TranslationContext {
  automaticAdmin: AutomaticAdmin;
  /** What the record holds now, as far as the caller may read it; none for a new handle. */
  current?: readonly HandleValue[];
}

/** The list as the record interface has it. Where `current` holds hidden values nothing is put by itself. */
export function toUpstream(inputs: readonly V2Input[], context: TranslationContext): HandleValue[] {
  const { automaticAdmin, current = [] } = context;
  const taken = new Set(current.filter(isHidden).map(({ index }) => index));
  const values = withIndexes(inputs, taken).map(valueToSend);
  if (values.some(({ type }) => type === ADMIN_TYPE)) return values;
  const occupied = new Set([...taken, ...values.map(({ index }) => index)]);
  return [...values, ...addedAdmins({ automaticAdmin, current, occupied })];
}

/** Values without an index get the lowest that is free, in their order; the record itself does not count. */
function withIndexes(inputs: readonly V2Input[], hidden: ReadonlySet<number>): (V2Input & { idx: number })[] {
  const taken = new Set([...hidden, ...inputs.flatMap(({ idx }) => (idx === undefined ? [] : [idx]))]);
  let next = 1;
  return inputs.map((input) => {
    if (input.idx !== undefined) return { ...input, idx: input.idx };
    while (taken.has(next)) next++;
    return { ...input, idx: next++ };
  });
}

function valueToSend({
  idx,
  type,
  data,
  ttl,
  references,
  permissions,
}: V2Input & { idx: number }): HandleValue {
  return {
    index: idx,
    type,
    data: dataToSend(type, data),
    ...permissionsToSend(permissions),
    ttl,
    ...(references.length > 0 && { references }),
  };
}

/**
 * A record that has administrators keeps them: the original puts its own HS_ADMIN in their place, and
 * a member of a group who changes a URL locks the others out.
 */
function addedAdmins({
  automaticAdmin,
  current,
  occupied,
}: {
  automaticAdmin: AutomaticAdmin;
  current: readonly HandleValue[];
  occupied: Set<number>;
}): HandleValue[] {
  const kept = current.filter(({ type }) => type === ADMIN_TYPE);
  const placed = (wanted: number): number => {
    let index = occupied.has(wanted) ? automaticAdmin.index : wanted;
    while (occupied.has(index)) index++;
    occupied.add(index);
    return index;
  };
  if (kept.length > 0) return kept.map((value) => ({ ...restated(value), index: placed(value.index) }));
  return [newAdmin(automaticAdmin, placed(automaticAdmin.index))];
}

function newAdmin({ admin, permissions }: AutomaticAdmin, index: number): HandleValue {
  const value = { handle: admin.handle, index: admin.index, permissions };
  return { index, type: ADMIN_TYPE, data: { format: 'admin', value }, ttl: DEFAULT_TTL_SECONDS };
}

/** A value the server showed, in the form in which it is sent back: without a timestamp. */
export function restated({ index, type, data, permissions, ttl, references }: HandleValue): HandleValue {
  return {
    index,
    type,
    data,
    ...permissionsToSend(permissions),
    ttl: ttl ?? DEFAULT_TTL_SECONDS,
    ...(references !== undefined && references.length > 0 && { references }),
  };
}
