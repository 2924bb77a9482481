// An ePIC v2 call: its settings, dependencies and caller login.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { UnclaimedNames } from './unclaimed-names.js';
import { ServiceError } from '../errors.js';
import type { HandleRef } from '../handle/handle.js';
import type { ValueReference } from '../handle/value.js';
import type { Freshness } from '../http/cache-headers.js';
import { contextOf } from '../http/context.js';
import type { ReportUnexpected } from '../http/error-reply.js';
import { decodePercent, readBasic, readIdentity } from '../http/identity.js';
import type { WithBody } from '../http/request-body.js';
import type { RunSteps, RunStepsOf } from '../http/request-work.js';
import type { StaleReason } from '../resolver/loader.js';
import type { Resolver } from '../resolver/resolver.js';
import type { SearchService } from '../hooks.js';
import type { IsTrustedProxy } from '../server/client-address.js';
import type { OriginOf, OriginRecord } from '../write/origin-record.js';
import type { CarryOut } from '../write/write.js';

export interface V2Settings {
  anonymousRead: boolean;
  /** Base URL of Location headers, before `/api/v2/handles`. Default: the request's base URL. */
  publicUrl?: string | undefined;
  /** Prefixes without a trailing slash. */
  prefixes: readonly string[];
  identities: ReadonlyMap<string, string>;
  /** The automatic HS_ADMIN; `handle` may contain `{prefix}` and `{identity}`. */
  admin: { index: number; handle: string; adminIndex: number; permissions: string };
  search: { maxHandles: number; concurrency: number };
  maxBodyBytes: number;
}

export interface V2Deps {
  settings: V2Settings;
  runStepsOf: RunStepsOf;
  withBody: WithBody;
  resolver: Pick<Resolver, 'resolve' | 'refOf'>;
  originOf: OriginOf;
  carryOut: CarryOut;
  /** Minted names whose response was lost, reused for a repeated POST. */
  unclaimed: UnclaimedNames;
  search: SearchService | undefined;
  freshness: Freshness;
  isTrustedProxy: IsTrustedProxy;
  onStale: (reason: StaleReason) => void;
  onUnexpected: ReportUnexpected;
  now: () => number;
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
  { originOf }: Pick<V2Deps, 'originOf'>,
  { res, login: { authorization } }: Pick<V2Call, 'res' | 'login'>,
  handle: HandleRef,
): OriginRecord {
  return originOf(handle, { authorization, caller: contextOf(res).caller });
}

/** HTTP Basic credentials with a handle identity, or with a name that `v2.identities` maps to an identity. */
export interface Login {
  identity: ValueReference;
  /** Header for the Handle server, which alone verifies the password. */
  authorization: string;
}

/** Parses the login. @throws ServiceError V2_LOGIN_NEEDED with advice on how to log in */
export function readLogin(authorization: string | undefined, identities: ReadonlyMap<string, string>): Login {
  const basic = readBasic(authorization);
  if (authorization === undefined || basic === undefined) throw loginNeeded('log in with HTTP Basic');
  const { name, password } = basic;
  if (password === undefined) throw loginNeeded('there is no colon between name and password');
  const mapped = identities.get(name);
  if (mapped !== undefined) {
    const encoded = Buffer.concat([Buffer.from(`${encodeURIComponent(mapped)}:`), password]);
    return { identity: readIdentity(mapped), authorization: `Basic ${encoded.toString('base64')}` };
  }
  const decoded = decodePercent(name);
  if (decoded.includes('/')) return { identity: readIdentity(decoded), authorization };
  throw loginNeeded(
    `the user name ${JSON.stringify(name)} is neither an identity such as 300%3A21.T1%2FUSER ` +
      '(colon and slash percent-encoded) nor one of the names configured in v2.identities',
  );
}

const loginNeeded = (detail: string): ServiceError => new ServiceError('V2_LOGIN_NEEDED', { detail });
