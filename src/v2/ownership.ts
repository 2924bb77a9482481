// Makes sure that the caller can still change a record after a write.
import { ServiceError } from '../errors.js';
import { type AdminData, RIGHT, decodeAdmin, decodeVlist } from '../handle/admin-data.js';
import { decodeOrNothing } from '../handle/bytes-codec.js';
import { foldHandle } from '../handle/handle.js';
import type { HandleValue, ValueReference } from '../handle/value.js';
import { storedBytes } from './stored-data.js';
import { ADMIN_TYPE, MEMBERS_TYPE } from './value.js';

export interface OwnershipQuestion {
  handle: string;
  /** The record after the write. */
  values: readonly HandleValue[];
  /** The record before it; empty for a new handle. */
  current: readonly HandleValue[];
  /** Who writes. */
  identity: ValueReference;
  /** Whom the automatic HS_ADMIN names: trusted, because the operator configured it. */
  automatic: ValueReference;
}

/** The values of a handle, none when it does not exist, undefined when this server does not know. */
export type ReadRecord = (handle: string) => Promise<readonly HandleValue[] | undefined>;

/** Each of them is enough to change the record, or to get the right to. */
const CHANGES = RIGHT.modifyValue | RIGHT.modifyAdmin | RIGHT.addAdmin;

/** Groups are looked for in no more records than this: each may cost a question to the server. */
const MAX_RECORDS = 32;

/**
 * Refuses a write after which no HS_ADMIN would let the caller change the record: a server would take
 * it (recording "PUT onto record removing HS_ADMIN") and from then on answer 403 to everybody.
 *
 * @throws ServiceError V2_NOT_OWNED
 */
export async function requireOwnership(question: OwnershipQuestion, readRecord: ReadRecord): Promise<void> {
  if (await staysOwned(question, readRecord)) return;
  const { index, handle } = question.identity;
  const detail = `let an HS_ADMIN value name ${index}:${handle}, or send none to have one added`;
  throw new ServiceError('V2_NOT_OWNED', { detail });
}

async function staysOwned(question: OwnershipQuestion, readRecord: ReadRecord): Promise<boolean> {
  const { handle, values, current, identity, automatic } = question;
  const prefixHandle = `0.NA/${handle.slice(0, handle.indexOf('/'))}`;
  const admins = adminsOf(values).filter(({ permissions }) => (permissions & CHANGES) !== 0);
  const before = adminsOf(current);
  // Whoever could write until now still can.
  if (
    before.length > 0 &&
    before.every((admin) => adminsOf(values).some((other) => isSameAdmin(admin, other)))
  ) {
    return true;
  }
  if (admins.some((admin) => names(admin, identity) || isSameReference(admin, automatic))) return true;
  return isMember(admins, { identity, prefixHandle, readRecord, seen: new Set() });
}

const adminsOf = (values: readonly HandleValue[]): AdminData[] =>
  values
    .filter(({ type }) => type === ADMIN_TYPE)
    .flatMap((value) => decodeOrNothing(decodeAdmin, storedBytes(value)) ?? []);

interface Search {
  identity: ValueReference;
  prefixHandle: string;
  readRecord: ReadRecord;
  /** Handles that were looked into, so that groups naming each other come to an end. */
  seen: Set<string>;
}

/** Looks into the HS_VLIST groups that are named, one after the other. */
async function isMember(groups: readonly ValueReference[], search: Search): Promise<boolean> {
  const { identity, prefixHandle, readRecord, seen } = search;
  for (const group of groups) {
    const place = `${group.index}:${foldHandle(group.handle, true)}`;
    if (seen.has(place) || seen.size === MAX_RECORDS) continue;
    seen.add(place);
    const record = await readRecord(group.handle);
    // The prefix mostly lives on another server, and administers everything under it.
    if (record === undefined && isSameHandle(group.handle, prefixHandle)) return true;
    const members = membersOf(record ?? [], group);
    if (members.some((member) => names(member, identity))) return true;
    if (await isMember(members, search)) return true;
  }
  return false;
}

const membersOf = (record: readonly HandleValue[], group: ValueReference): ValueReference[] =>
  record
    .filter(({ type, index }) => type === MEMBERS_TYPE && (group.index === 0 || group.index === index))
    .flatMap((value) => decodeOrNothing(decodeVlist, storedBytes(value)) ?? []);

/** Index 0 stands for every index. The suffix keeps its case, although a login ignores it. */
const names = (admin: ValueReference, identity: ValueReference): boolean =>
  isSameHandle(admin.handle, identity.handle) && (admin.index === 0 || admin.index === identity.index);

const isSameHandle = (one: string, other: string): boolean =>
  foldHandle(one, true) === foldHandle(other, true);

const isSameReference = (one: ValueReference, other: ValueReference): boolean =>
  isSameHandle(one.handle, other.handle) && one.index === other.index;

const isSameAdmin = (one: AdminData, other: AdminData): boolean =>
  isSameReference(one, other) && one.permissions === other.permissions;
