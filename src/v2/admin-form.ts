// HS_ADMIN data in the form v2 gives them: whom they name, and twelve permissions by name.
import { z } from 'zod';
import { type AdminData, RIGHT, decodeAdmin, encodeAdmin } from '../handle/admin-data.js';
import { type Refuse, firstComplaint } from './bad-body.js';
import { storableText, wholeNumber, yesOrNo } from './fields.js';
import type { V2Admin } from './value.js';

/** In the order in which the original shows them, under the names its documentation has. */
const PERMISSIONS = [
  ['add_handle', RIGHT.addHandle],
  ['delete_handle', RIGHT.deleteHandle],
  ['add_naming_auth', RIGHT.addDerivedPrefix],
  ['delete_naming_auth', RIGHT.deleteDerivedPrefix],
  ['modify_value', RIGHT.modifyValue],
  ['remove_value', RIGHT.removeValue],
  ['add_value', RIGHT.addValue],
  ['read_value', RIGHT.readValue],
  ['modify_admin', RIGHT.modifyAdmin],
  ['remove_admin', RIGHT.removeAdmin],
  ['add_admin', RIGHT.addAdmin],
  ['list_handles', RIGHT.listHandles],
] as const;

/** Services on version 8 of the Handle library have these names. */
const NEWER_NAMES = { add_naming_auth: 'add_derived_prefix', delete_naming_auth: 'delete_derived_prefix' };

const underOldNames = (perms: unknown): unknown => {
  if (typeof perms !== 'object' || perms === null) return perms;
  const given = perms as Record<string, unknown>;
  const renamed = Object.entries(NEWER_NAMES).map(([old, newer]) => [old, given[old] ?? given[newer]]);
  return { ...given, ...Object.fromEntries(renamed) };
};

const adminForm = z.object(
  {
    adminId: storableText,
    adminIdIndex: wholeNumber(),
    perms: z.preprocess(
      underOldNames,
      z.object(Object.fromEntries(PERMISSIONS.map(([name]) => [name, yesOrNo])), {
        error: 'give an object of the twelve permissions',
      }),
    ),
  },
  { error: 'give an object of adminId, adminIdIndex and perms' },
);

/** Reads the data of an HS_ADMIN value; every key is needed, as in the original. */
export function readAdminForm(json: unknown, refuse: Refuse): AdminData {
  const parsed = adminForm.safeParse(json);
  if (!parsed.success) throw refuse(firstComplaint(parsed.error));
  const { adminId, adminIdIndex, perms } = parsed.data;
  const permissions = PERMISSIONS.reduce((bits, [name, bit]) => (perms[name] ? bits | bit : bits), 0);
  return { handle: adminId, index: adminIdIndex, permissions, legacy: false };
}

/** Shows HS_ADMIN bytes in that form; throws a RangeError when they are none. */
export function showAdminForm(bytes: Buffer): V2Admin {
  const { handle, index, permissions } = decodeAdmin(bytes);
  const perms = PERMISSIONS.map(([name, bit]) => [name, (permissions & bit) !== 0] as const);
  return { adminId: handle, adminIdIndex: index, perms: Object.fromEntries(perms) };
}

export const adminFormToBytes = (json: unknown, refuse: Refuse): Buffer =>
  encodeAdmin(readAdminForm(json, refuse));
