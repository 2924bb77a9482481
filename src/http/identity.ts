// Claimed identities of logins, for limits and queues. Only the Handle server can verify them.
import { tryDecode } from '../handle/bytes.js';
import { parseReference, referenceKey } from '../handle/value.js';

/**
 * Returns the identity in a Basic login: index and normalised handle. Ignores password and spelling
 * (percent-encoding, case, leading zeros), so that a caller cannot multiply its identities.
 *
 * @example identityOf('Basic ' + btoa('0300%3a21.t1%2fuser:secret')) // '300:21.T1/USER'
 * @returns undefined for any other login; a session does not reveal its user
 */
export function identityOf(authorization: string | undefined): string | undefined {
  const login = readBasic(authorization);
  if (login === undefined) return undefined;
  return referenceKey(parseReference(tryDecode(decodeURIComponent, login.name) ?? login.name), false);
}

/**
 * Parses a Basic login. The first colon ends the name (RFC 7617 §2), so clients send an identity's colon as `%3A`.
 *
 * @returns undefined for any other login; `password` is undefined without a colon
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
