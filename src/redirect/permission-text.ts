// Permissions in words: who may read and write a value, and what an administrator may do.
import { RIGHT } from '../handle/predefined-data.js';
import { lastFourPermissions } from '../handle/value.js';

const list = new Intl.ListFormat('en-GB');

const verbsOf = (read: string | undefined, write: string | undefined): string =>
  [read === '1' ? 'read' : '', write === '1' ? 'write' : ''].filter((verb) => verb !== '').join(' and ') ||
  'neither read nor write';

/** The four digits of a value: read and write for administrators, read and write for the public. */
export function describeAccess(permissions: string | undefined): string {
  const [adminRead, adminWrite, publicRead, publicWrite] = lastFourPermissions(permissions);
  return `everyone may ${verbsOf(publicRead, publicWrite)}, administrators may ${verbsOf(adminRead, adminWrite)}`;
}

const RIGHTS: readonly [bit: number, name: string][] = [
  [RIGHT.addHandle, 'create handles'],
  [RIGHT.deleteHandle, 'delete handles'],
  [RIGHT.addDerivedPrefix, 'create derived prefixes'],
  [RIGHT.deleteDerivedPrefix, 'delete derived prefixes'],
  [RIGHT.modifyValue, 'change values'],
  [RIGHT.removeValue, 'remove values'],
  [RIGHT.addValue, 'add values'],
  [RIGHT.readValue, 'read values'],
  [RIGHT.modifyAdmin, 'change administrators'],
  [RIGHT.removeAdmin, 'remove administrators'],
  [RIGHT.addAdmin, 'add administrators'],
  [RIGHT.listHandles, 'list handles'],
];

/** The twelve digits of an HS_ADMIN, the highest bit first; undefined for any other text. */
export function describeRights(permissions: string): string | undefined {
  if (!/^[01]{12}$/.test(permissions)) return undefined;
  const bits = parseInt(permissions, 2);
  const names = (areGranted: boolean): string[] =>
    RIGHTS.filter(([bit]) => ((bits & bit) !== 0) === areGranted).map(([, name]) => name);
  const granted = names(true);
  const missing = names(false);
  if (missing.length === 0) return 'may do everything';
  if (granted.length === 0) return 'may do nothing';
  return granted.length > missing.length
    ? `may do everything, except ${list.format(missing)}`
    : `may ${list.format(granted)}`;
}
