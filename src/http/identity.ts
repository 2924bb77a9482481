// Who a login says it is, for limits and queues. Only the Handle server knows whether it is true.
import { type HandleRef, foldHandle } from '../handle/handle.js';
import type { ValueReference } from '../handle/value.js';

/**
 * The identity in a Basic login: index and handle, and nothing else. Neither the password nor the spelling of the name
 * (percent-encoding, letter case, zeros before the index) makes another one, or a caller could be as many as it likes.
 *
 * @example identityOf('Basic ' + btoa('0300%3a21.t1%2fuser:secret')) // '300:21.T1/USER'
 * @returns undefined without a Basic login: a session names nobody that can be checked here
 */
export function identityOf(authorization: string | undefined): string | undefined {
  const login = readBasic(authorization);
  if (login === undefined) return undefined;
  const { index, handle } = readIdentity(decodePercent(login.name));
  return `${index}:${foldHandle(handle, false)}`;
}

/**
 * The first colon ends the name (RFC 7617 §2), so an identity has its own colon as `%3A`.
 *
 * @returns undefined without a Basic login; no password where there is no colon
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

/** Without an index it is 0, as a Handle server reads it. */
export function readIdentity(text: string): ValueReference {
  const [, index, handle] = /^(\d{1,10}):(.*)$/s.exec(text) ?? [];
  return { index: Number(index ?? 0), handle: handle ?? text };
}

/**
 * Whether a read of the handle is refused when its login is wrong. False for a session too: everybody gets one, and it
 * need not be logged in.
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
