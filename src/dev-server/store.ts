// The records of the server, its prefixes, and administrator permissions.
import { decodeAdmin, decodeVlist } from '../handle/value-data.js';
import { tryDecode } from '../handle/bytes.js';
import { foldHandle, upperAscii } from '../handle/handle.js';
import type { ValueReference } from '../handle/value.js';
import { type StoredValue, valueFromJson } from './value.js';

/** Values of a record in the record interface's JSON, for a seed or `put`. */
export type RecordInput = readonly unknown[];

/** Records by upper-cased handle, as on a server with `case_sensitive = "no"`. */
export class RecordStore {
  readonly #records = new Map<string, StoredValue[]>();
  readonly #homed: Set<string>;
  readonly #now: () => number;

  constructor({ prefixes, now }: { prefixes: readonly string[]; now: () => number }) {
    this.#homed = new Set(prefixes.map(prefixHandle));
    this.#now = now;
  }

  /** The sorted prefix handles of this server. */
  get prefixes(): string[] {
    return [...this.#homed].sort();
  }

  /** Whether this server is responsible for the handle. A name without a slash is a prefix handle. */
  isHomed(handle: string): boolean {
    const slash = handle.indexOf('/');
    const prefix = slash === -1 ? '0.NA' : handle.slice(0, slash);
    return prefix === '0.SITE' || this.#homed.has(prefixHandle(prefix));
  }

  get(handle: string): StoredValue[] | undefined {
    return this.#records.get(storeKey(handle));
  }

  set(handle: string, values: StoredValue[]): void {
    this.#records.set(storeKey(handle), values);
  }

  delete(handle: string): boolean {
    return this.#records.delete(storeKey(handle));
  }

  /** Writes a whole record without checking permissions. */
  put(handle: string, record: RecordInput): void {
    this.set(
      handle,
      record.map((value) => valueFromJson(value, this.nowSeconds())),
    );
  }

  nowSeconds(): number {
    return Math.floor(this.#now() / 1000);
  }

  /** Returns the stored handles of exactly this prefix, in byte order. */
  storedHandles(prefix: string): string[] {
    const start = `${prefixHandle(prefix).slice('0.NA/'.length)}/`;
    const names = [...this.#records.keys()].filter((key) => key.startsWith(start));
    return names.sort((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)));
  }
}

const storeKey = (handle: string): string => upperAscii(handle.includes('/') ? handle : `0.NA/${handle}`);

/** Returns the prefix handle: `21.t1` and `0.NA/21.T1` both become `0.NA/21.T1`. */
export function prefixHandle(prefix: string): string {
  const upper = upperAscii(prefix);
  return upper.startsWith('0.NA/') ? upper : `0.NA/${upper}`;
}

const EVERY_RIGHT = 0xfff;
const MAX_NESTED_GROUPS = 8;

export type Rights = ReturnType<typeof createRights>;

export function createRights(store: RecordStore, serverAdmins: readonly ValueReference[]) {
  const isServerAdmin = (identity: ValueReference): boolean =>
    serverAdmins.some((admin) => isSameAdmin(admin, identity));

  const names = (admin: ValueReference, identity: ValueReference, depth: number): boolean => {
    if (isSameAdmin(admin, identity)) return true;
    if (depth === MAX_NESTED_GROUPS) return false;
    const groups = (store.get(admin.handle) ?? []).filter(
      ({ type, index }) => type === 'HS_VLIST' && (admin.index === 0 || admin.index === index),
    );
    return groups
      .flatMap(({ data }) => tryDecode(decodeVlist, data) ?? [])
      .some((member) => names(member, identity, depth + 1));
  };

  /** Returns the permission bits that the HS_ADMIN values of a record grant to an identity. */
  const on = (record: readonly StoredValue[], identity: ValueReference): number => {
    if (isServerAdmin(identity)) return EVERY_RIGHT;
    return record
      .filter(isAdminValue)
      .map(({ data }) => tryDecode(decodeAdmin, data))
      .filter((admin) => admin !== undefined && names(admin, identity, 0))
      .reduce((bits, admin) => bits | (admin?.permissions ?? 0), 0);
  };

  return { on, isServerAdmin };
}

export const isAdminValue = ({ type }: StoredValue): boolean => type === 'HS_ADMIN';

/** Suffixes are case-sensitive here, not in logins (recording "create: user handle lower case"). */
function isSameAdmin(admin: ValueReference, identity: ValueReference): boolean {
  const isSameHandle = foldHandle(admin.handle, true) === foldHandle(identity.handle, true);
  return isSameHandle && (admin.index === 0 || admin.index === identity.index);
}
