// Who calls: HTTP Basic with a handle identity, or with a name that the configuration maps to one.
import { ServiceError } from '../errors.js';
import { foldHandle } from '../handle/handle.js';
import type { ValueReference } from '../handle/value.js';

export interface Login {
  identity: ValueReference;
  /** What the Handle server gets to see: it alone knows whether the password is right. */
  authorization: string;
}

/** The identity as one text, the same for all its spellings: a login ignores the case (recording "create: user handle lower case"). */
export const holderOf = ({ identity }: Login): string =>
  `${identity.index}:${foldHandle(identity.handle, false)}`;

/** @throws ServiceError V2_LOGIN_NEEDED whose detail says how to log in */
export function readLogin(authorization: string | undefined, identities: ReadonlyMap<string, string>): Login {
  if (authorization === undefined) throw refused('log in with HTTP Basic');
  const { name, password } = readBasic(authorization);
  const mapped = identities.get(name);
  if (mapped !== undefined) {
    const encoded = Buffer.concat([Buffer.from(`${encodeURIComponent(mapped)}:`), password]);
    return { identity: readIdentity(mapped), authorization: `Basic ${encoded.toString('base64')}` };
  }
  const decoded = percentDecoded(name);
  if (!decoded.includes('/')) {
    throw refused(`the user name ${JSON.stringify(name)} is neither an identity such as 300%3A21.T1%2FUSER
      (colon and slash percent-encoded) nor one of the names configured in v2.identities`);
  }
  return { identity: readIdentity(decoded), authorization };
}

/** The first colon ends the name (RFC 7617 §2), which is why that of an identity is written `%3A`. */
function readBasic(authorization: string): { name: string; password: Buffer } {
  const [, encoded] = /^basic +([A-Za-z0-9+/=_-]+) *$/i.exec(authorization) ?? [];
  if (encoded === undefined) throw refused('log in with HTTP Basic');
  const bytes = Buffer.from(encoded, 'base64');
  const colon = bytes.indexOf(':');
  if (colon === -1) throw refused('there is no colon between name and password');
  return { name: bytes.toString('utf8', 0, colon), password: bytes.subarray(colon + 1) };
}

/** Without an index it is 0, as a Handle server reads it. */
function readIdentity(text: string): ValueReference {
  const [, index, handle] = /^(\d{1,10}):(.*)$/s.exec(text) ?? [];
  return { index: Number(index ?? 0), handle: handle ?? text };
}

function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const refused = (detail: string): ServiceError =>
  new ServiceError('V2_LOGIN_NEEDED', { detail: detail.replaceAll(/\s+/g, ' ') });
