// Who may do what: HS_ADMIN values, the HS_VLIST groups they name, and server administrators.
import { foldHandle } from '../../src/handle/handle.js';
import { decodeAdmin, decodeVlist } from '../../src/handle/admin-data.js';
import type { ValueReference } from '../../src/handle/value.js';
import { decodeOrNothing } from '../../src/handle/bytes-codec.js';
import type { RecordStore } from './store.js';
import type { StoredValue } from './value.js';

const EVERY_RIGHT = 0xfff;
const MAX_NESTED_GROUPS = 8;

export interface Rights {
  /** The bits that the HS_ADMIN values of this record give to this identity. */
  on: (record: readonly StoredValue[], identity: ValueReference) => number;
  isServerAdmin: (identity: ValueReference) => boolean;
}

/** Makes the judge of rights over the records of a store. */
export function createRights(store: RecordStore, serverAdmins: readonly ValueReference[]): Rights {
  const isServerAdmin = (identity: ValueReference): boolean =>
    serverAdmins.some((admin) => isSameReference(admin, identity));

  const names = (admin: ValueReference, identity: ValueReference, depth: number): boolean => {
    if (isSameReference(admin, identity)) return true;
    if (depth === MAX_NESTED_GROUPS) return false;
    const groups = (store.get(admin.handle) ?? []).filter(
      ({ type, index }) => type === 'HS_VLIST' && (admin.index === 0 || admin.index === index),
    );
    return groups
      .flatMap(({ data }) => decodeOrNothing(decodeVlist, data) ?? [])
      .some((member) => names(member, identity, depth + 1));
  };

  const on = (record: readonly StoredValue[], identity: ValueReference): number => {
    if (isServerAdmin(identity)) return EVERY_RIGHT;
    return record
      .filter(isAdminValue)
      .map(({ data }) => decodeOrNothing(decodeAdmin, data))
      .filter((admin) => admin !== undefined && names(admin, identity, 0))
      .reduce((bits, admin) => bits | (admin?.permissions ?? 0), 0);
  };

  return { on, isServerAdmin };
}

export const isAdminValue = ({ type }: Pick<StoredValue, 'type'>): boolean => type === 'HS_ADMIN';

/** The suffix keeps its case here, although logins ignore it (recording "create: user handle lower case"). */
function isSameReference(admin: ValueReference, identity: ValueReference): boolean {
  const isSameHandle = foldHandle(admin.handle, true) === foldHandle(identity.handle, true);
  return isSameHandle && (admin.index === 0 || admin.index === identity.index);
}
