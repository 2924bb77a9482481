// HS_ADMIN data as callers may write them in JSON.
import { encodeAdmin } from '../../src/handle/admin-data.js';
import { numberFormat, primitiveText } from './bad-input.js';

export function adminFromJson(json: unknown): Buffer {
  const { handle, index, permissions, legacyByteLength } = json as Record<string, unknown>;
  return encodeAdmin({
    handle: String(handle),
    index: Number(index),
    permissions: permissionBits(permissions),
    legacy: legacyByteLength === true,
  });
}

/** All the forms in which the server takes the twelve permissions. */
function permissionBits(permissions: unknown): number {
  if (permissions === undefined || permissions === null) return 0;
  if (permissions === '*') return 0xfff;
  if (typeof permissions === 'boolean') return permissions ? 0xfff : 0;
  if (Array.isArray(permissions)) {
    return permissions.reduce<number>((bits, on, place) => (on ? bits | (1 << place) : bits), 0);
  }
  const digits = primitiveText(permissions);
  if (!/^[01]{1,12}$/.test(digits)) throw numberFormat(digits);
  return parseInt(digits, 2);
}
