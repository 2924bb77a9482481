// An ePIC v2 call: the interface that answers it, and its caller's login.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Host } from '../app/plugin.js';
import type { Config } from '../config/schema.js';
import { ServiceError } from '../errors.js';
import type { HandleRef } from '../handle/handle.js';
import type { ValueReference } from '../handle/value.js';
import type { Freshness } from '../http/cache-headers.js';
import { contextOf } from '../http/context.js';
import { decodePercent, readBasic, identityIn } from '../http/identity.js';
import type { WithBody } from '../http/request-body.js';
import type { RunSteps } from '../http/request-work.js';
import type { OriginRecord } from '../write/origin-record.js';
import type { CarryOut } from '../write/write.js';
import type { UnclaimedNames } from './unclaimed-names.js';

/** The parts that only writes use. */
export interface V2Writes {
  withBody: WithBody;
  carryOut: CarryOut;
  /** Minted names whose response was lost, reused for a repeated POST. */
  unclaimed: UnclaimedNames;
}

/** The ePIC v2 interface, which each reload creates. */
export interface V2 extends V2Writes {
  config: Config;
  host: Host;
  /** Identities by the name that stands for them. */
  identities: ReadonlyMap<string, string>;
  freshness: Freshness;
}

/** A request with or without a login. */
export interface AnonymousCall {
  req: IncomingMessage;
  res: ServerResponse;
  /** Processes the records of the request in time slices. */
  run: RunSteps;
}

export interface V2Call extends AnonymousCall {
  login: Login;
}

/** Returns the record at its Handle server, accessed with the caller's login. */
export function originFor(
  { host }: V2,
  { res, login: { authorization } }: V2Call,
  handle: HandleRef,
): OriginRecord {
  return host.originOf(handle, { authorization, caller: contextOf(res).caller });
}

/** HTTP Basic credentials with a handle identity, or with a name that `v2.identities` maps to an identity. */
export interface Login {
  identity: ValueReference;
  /** Header for the Handle server, which alone verifies the password. */
  authorization: string;
}

/** Parses the login. @throws ServiceError V2_LOGIN_NEEDED with advice on how to log in */
export function readV2Login(
  authorization: string | undefined,
  identities: ReadonlyMap<string, string>,
): Login {
  const basic = readBasic(authorization);
  if (authorization === undefined || basic === undefined) throw loginNeeded('log in with HTTP Basic');
  const { name, password } = basic;
  if (password === undefined) throw loginNeeded('there is no colon between name and password');
  const mapped = identities.get(name);
  if (mapped !== undefined) {
    const encoded = Buffer.concat([Buffer.from(`${encodeURIComponent(mapped)}:`), password]);
    return { identity: identityIn(mapped), authorization: `Basic ${encoded.toString('base64')}` };
  }
  const decoded = decodePercent(name);
  if (decoded.includes('/')) return { identity: identityIn(decoded), authorization };
  throw loginNeeded(
    `the user name ${JSON.stringify(name)} is neither an identity such as 300%3A21.T1%2FUSER ` +
      '(colon and slash percent-encoded) nor one of the names configured in v2.identities',
  );
}

const loginNeeded = (detail: string): ServiceError => new ServiceError('V2_LOGIN_NEEDED', { detail });
