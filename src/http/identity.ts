// The claimed identity of a login, for limits and queues. Only the Handle server can verify it.
import { type HandleRef, foldHandle } from '../handle/handle.js';
import type { ValueReference } from '../handle/value.js';

/**
 * The identity in a Basic login: index and handle in normal form. Password and spelling (percent-encoding, letter case,
 * leading zeros) do not count, so that a caller cannot multiply its identities.
 *
 * @example identityOf('Basic ' + btoa('0300%3a21.t1%2fuser:secret')) // '300:21.T1/USER'
 * @returns undefined without a Basic login, because a session does not show its user here
 */
export function identityOf(authorization: string | undefined): string | undefined {
  const login = readBasic(authorization);
  if (login === undefined) return undefined;
  const { index, handle } = readIdentity(decodePercent(login.name));
  return `${index}:${foldHandle(handle, false)}`;
}

/**
 * Reads a Basic login. The first colon ends the name (RFC 7617 §2), so the colon of an identity is sent as `%3A`.
 *
 * @returns undefined without a Basic login; `password` is undefined without a colon
 */
export function readBasic(
  authorization: string | undefined,
): { name: string; password: Buffer | undefined } | undefined {
  const [, encoded] = /^basic +([A-Za-z0-9+/=_-]+) *$/i.exec(authorization ?? '') ?? [];
  if (encoded === undefined) return undefined;
  const bytes = Buffer.from(encoded, 'base64');
  const colon = bytes.indexOf(':');
  if (colon === -1) return { name: bytes.toString('utf8'), password: undefined };
  return { name: bytes.toString('utf8', 0, colon), password: bytes.subarray(colon + 1) };
}

/** Parses `index:handle`. The index defaults to 0, as on a Handle server. */
export function readIdentity(text: string): ValueReference {
  const [, index, handle] = /^(\d{1,10}):(.*)$/s.exec(text) ?? [];
  return { index: Number(index ?? 0), handle: handle ?? text };
}

/**
 * Whether the Handle server would reject a read of the handle with a wrong login. False for sessions: anyone can create
 * one, and it need not be logged in.
 */
export type ChecksLogin = (handle: HandleRef, authorization: string | undefined) => boolean;

/** `checksLogins`: whether the servers of a handle check the logins of reads. */
export const createChecksLogin =
  (checksLogins: (handle: HandleRef) => boolean): ChecksLogin =>
  (handle, authorization) =>
    identityOf(authorization) !== undefined && checksLogins(handle);

export function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
