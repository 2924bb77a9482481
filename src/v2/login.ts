// The login of a caller: HTTP Basic with a handle identity, or with a name that `v2.identities` maps to one.
import { ServiceError } from '../errors.js';
import type { ValueReference } from '../handle/value.js';

export interface Login {
  identity: ValueReference;
  /** The header for the Handle server, which alone checks the password. */
  authorization: string;
}

/** @throws ServiceError V2_LOGIN_NEEDED whose detail says how to log in */
export function readLogin(authorization: string | undefined, identities: ReadonlyMap<string, string>): Login {
  if (authorization === undefined) throw loginNeeded('log in with HTTP Basic');
  const { name, password } = readBasic(authorization);
  const mapped = identities.get(name);
  if (mapped !== undefined) {
    const encoded = Buffer.concat([Buffer.from(`${encodeURIComponent(mapped)}:`), password]);
    return { identity: readIdentity(mapped), authorization: `Basic ${encoded.toString('base64')}` };
  }
  const decoded = decodePercent(name);
  if (!decoded.includes('/')) {
    throw loginNeeded(
      `the user name ${JSON.stringify(name)} is neither an identity such as 300%3A21.T1%2FUSER ` +
        '(colon and slash percent-encoded) nor one of the names configured in v2.identities',
    );
  }
  return { identity: readIdentity(decoded), authorization };
}

/** The first colon ends the name (RFC 7617 §2), so an identity has its own colon as `%3A`. */
function readBasic(authorization: string): { name: string; password: Buffer } {
  const [, encoded] = /^basic +([A-Za-z0-9+/=_-]+) *$/i.exec(authorization) ?? [];
  if (encoded === undefined) throw loginNeeded('log in with HTTP Basic');
  const bytes = Buffer.from(encoded, 'base64');
  const colon = bytes.indexOf(':');
  if (colon === -1) throw loginNeeded('there is no colon between name and password');
  return { name: bytes.toString('utf8', 0, colon), password: bytes.subarray(colon + 1) };
}

/** Without an index it is 0, as a Handle server reads it. */
function readIdentity(text: string): ValueReference {
  const [, index, handle] = /^(\d{1,10}):(.*)$/s.exec(text) ?? [];
  return { index: Number(index ?? 0), handle: handle ?? text };
}

function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const loginNeeded = (detail: string): ServiceError => new ServiceError('V2_LOGIN_NEEDED', { detail });
