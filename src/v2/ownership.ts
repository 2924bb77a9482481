// Plans the record to write, including an administrator, and rejects a write that locks the caller out.
import { ServiceError } from '../errors.js';
import { tryDecode } from '../handle/bytes.js';
import { foldHandle } from '../handle/handle.js';
import { type AdminData, RIGHT, decodeAdmin, stepBytesOfValueData } from '../handle/value-data.js';
import { type HandleValue, type ValueReference, referenceKey } from '../handle/value.js';
import { type RunSteps, type Steps, mapLongInSteps } from '../time-slicer.js';
import type { V2Call } from './call.js';
import { type CallerRecord, type SizedValues, readPublic } from './read.js';
import { ADMIN_TYPE, MEMBERS_TYPE, type V2Input, stepMembers } from './translation/data.js';
import { type WritePlan, planWrite, toRecord } from './translation/record.js';

interface NewRecord {
  inputs: readonly V2Input[];
  handle: string;
  /** The stored record; undefined for a new handle. */
  current?: CallerRecord | undefined;
  /** Total length of body and stored record (characters), which estimates the processing time. */
  chars: number;
}

interface PlannedRecord {
  values: readonly HandleValue[];
  plan: WritePlan;
}

const NO_RECORD: CallerRecord = { values: [], chars: 0, isFull: true };

/**
 * Plans the record to write.
 *
 * @throws ServiceError V2_LOCKOUT if it would lock the caller out, V2_INDEX_TAKEN if it overwrites a hidden value
 */
export async function planRecord(
  call: V2Call,
  { inputs, handle, current = NO_RECORD, chars }: NewRecord,
): Promise<PlannedRecord> {
  const { index, permissions } = call.v2.config.v2.admin;
  const { identity } = call.login;
  const admin = automaticAdmin(call.v2.config.v2.admin, prefixOf(handle), identity);
  function* plan(): Steps<PlannedRecord & { groups: AdminData[] | undefined }> {
    const values = yield* toRecord(inputs, { index, admin, permissions }, current.values);
    const groups = yield* groupsToSearch({ values, current: current.values, identity, automatic: admin });
    return { values, plan: yield* planWrite({ ...current, current: current.values, next: values }), groups };
  }
  const { groups, ...planned } = await call.run(plan(), chars);
  const search = { handle, identity, run: call.run, readGroup: (group: string) => readGroup(call, group) };
  if (groups !== undefined) await assertMember(groups, search);
  return planned;
}

const prefixOf = (handle: string): string => handle.slice(0, handle.indexOf('/'));

function automaticAdmin(
  { handle, adminIndex }: { handle: string; adminIndex: number },
  prefix: string,
  identity: ValueReference,
): ValueReference {
  if (handle === '{identity}') return identity;
  const filled = handle.replaceAll('{prefix}', prefix).replaceAll('{identity}', identity.handle);
  return { handle: filled, index: adminIndex };
}

/** Reads a group record. A missing prefix record counts as unknown, because it is usually on a different server. */
async function readGroup(call: V2Call, handle: string): Promise<SizedValues | undefined> {
  const record = await readPublic(call, call.v2.host.refOf(handle)).catch(() => undefined);
  return record ?? (handle.startsWith('0.NA/') ? undefined : NO_RECORD);
}

interface Ownership {
  /** Record after the write. */
  values: readonly HandleValue[];
  /** Record before the write; empty for a new handle. */
  current: readonly HandleValue[];
  identity: ValueReference;
  /** Administrator in the automatic HS_ADMIN, trusted because the operator configured it. */
  automatic: ValueReference;
}

interface GroupSearch {
  handle: string;
  identity: ValueReference;
  run: RunSteps;
  /** Returns the values of a group record; empty if it does not exist, undefined if it is on a different server. */
  readGroup: (handle: string) => Promise<SizedValues | undefined>;
}

/** Rights that each suffice to change the record, or to obtain the right to change it. */
const CHANGE_RIGHTS = RIGHT.modifyValue | RIGHT.modifyAdmin | RIGHT.addAdmin;

/** Maximum group records per check, because each may cost an upstream request. */
const MAX_GROUPS = 32;

/** Maximum compared members per group; the rest are ignored. Real groups have tens of members. */
const MAX_MEMBERS = 2048;

/**
 * Returns the administrators after the write, if one of them has to be a group of the caller so that the caller can
 * still change the record. A Handle server accepts a write that locks the caller out (recording "PUT onto record removing
 * HS_ADMIN"), then refuses all later writes with 403.
 */
export function* groupsToSearch({
  values,
  current,
  identity,
  automatic,
}: Ownership): Steps<AdminData[] | undefined> {
  const admins = yield* adminsOf(values);
  const changers = admins.filter(({ permissions }) => (permissions & CHANGE_RIGHTS) !== 0);
  const isAutomatic = (admin: ValueReference): boolean =>
    admin.index === automatic.index && isSameHandle(admin.handle, automatic.handle);
  if (changers.some(isAutomatic) || includesIdentity(changers, identity)) return undefined;
  const before = yield* adminsOf(current);
  const kept = new Set(admins.map(adminKey));
  if (before.length > 0 && before.every((admin) => kept.has(adminKey(admin)))) return undefined;
  return changers;
}

/** Asserts that one of the groups includes the caller. @throws ServiceError V2_LOCKOUT */
export async function assertMember(groups: readonly ValueReference[], search: GroupSearch): Promise<void> {
  if (await isMember(groups, search)) return;
  const { index, handle } = search.identity;
  const detail = `let an HS_ADMIN value name ${index}:${handle}, or send none to have one added`;
  throw new ServiceError('V2_LOCKOUT', { detail });
}

function* adminsOf(values: readonly HandleValue[]): Steps<AdminData[]> {
  const admins: AdminData[] = [];
  for (const { data } of values.filter(({ type }) => type === ADMIN_TYPE)) {
    const admin = tryDecode(decodeAdmin, yield* stepBytesOfValueData(data));
    if (admin !== undefined) admins.push(admin);
    yield;
  }
  return admins;
}

/** Searches HS_VLIST groups for the caller, depth-first. `visited`: groups, which may reference each other. */
async function isMember(
  groups: readonly ValueReference[],
  search: GroupSearch,
  visited = new Set<string>(),
): Promise<boolean> {
  const { handle, identity, run, readGroup } = search;
  for (const group of groups) {
    const key = referenceKey(group, true);
    if (visited.size === MAX_GROUPS) return false;
    if (visited.has(key)) continue;
    visited.add(key);
    const record = await readGroup(group.handle);
    // A prefix record administers all handles under its prefix.
    if (record === undefined && isSameHandle(group.handle, `0.NA/${prefixOf(handle)}`)) return true;
    const { values, chars } = record ?? NO_RECORD;
    const members = await run(membersIn(values, group), chars);
    if (includesIdentity(members, identity)) return true;
    if (await isMember(members, search, visited)) return true;
  }
  return false;
}

function* membersOf({ data }: HandleValue): Steps<ValueReference[]> {
  const members = yield* stepMembers(yield* stepBytesOfValueData(data), (handle, index) => ({
    handle,
    index,
  }));
  return members?.slice(0, MAX_MEMBERS) ?? [];
}

function* membersIn(
  record: readonly HandleValue[],
  { index: wanted }: ValueReference,
): Steps<ValueReference[]> {
  const isWanted = ({ type, index }: HandleValue): boolean =>
    type === MEMBERS_TYPE && (wanted === 0 || wanted === index);
  const lists = yield* mapLongInSteps(record.filter(isWanted), membersOf);
  return lists.flat().slice(0, MAX_MEMBERS);
}

/** Whether administrators include this identity. Index 0 matches any; the case of suffixes matters, unlike in logins. */
function includesIdentity(admins: readonly ValueReference[], { handle, index }: ValueReference): boolean {
  const folded = foldHandle(handle, true);
  return admins.some(
    (admin) => (admin.index === 0 || admin.index === index) && foldHandle(admin.handle, true) === folded,
  );
}

const isSameHandle = (one: string, other: string): boolean =>
  one === other || foldHandle(one, true) === foldHandle(other, true);

/** Returns equal keys for equal administrators, to compare thousands of them in a set. */
const adminKey = (admin: AdminData): string => `${admin.permissions} ${referenceKey(admin, true)}`;
