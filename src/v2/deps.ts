// Settings and dependencies of ePIC v2, and the request of a caller with a login.
import type { Request, Response } from 'express';
import type { HandleLock } from '../coordination/key-lock.js';
import type { UnclaimedNames } from '../coordination/unclaimed-names.js';
import type { Freshness } from '../http/cache-headers.js';
import type { ReportUnexpected } from '../http/error-reply.js';
import type { ChecksLogin } from '../http/identity.js';
import type { WithBody } from '../http/request-body.js';
import type { RunSteps, RunStepsOf } from '../http/request-work.js';
import type { StaleReason } from '../resolver/resolution.js';
import type { Resolver } from '../resolver/resolver.js';
import type { LimitMiss } from '../upstream/caller.js';
import type { RecordClient } from '../upstream/record-client.js';
import type { ReverseLookup } from '../upstream/reverse-lookup.js';
import type { Login } from './login.js';

export interface V2Settings {
  anonymousRead: boolean;
  realm: string;
  /** The URL before `/api/v2/handles` in a Location; by default that of the request. */
  publicUrl?: string | undefined;
  /** Without a trailing slash. */
  prefixes: readonly string[];
  identities: ReadonlyMap<string, string>;
  /** The automatic HS_ADMIN; `handle` may contain `{prefix}` and `{identity}`. */
  admin: { index: number; handle: string; adminIndex: number; permissions: string };
  search: { maxHandles: number; concurrency: number };
  maxBodyBytes: number;
}

export interface V2Deps {
  settings: V2Settings;
  /** Of the request: its work on records in slices. */
  run: RunSteps;
  withBody: WithBody;
  records: RecordClient;
  resolver: Pick<Resolver<unknown>, 'resolve' | 'fence'>;
  lock: HandleLock;
  /** Minted names whose response was lost, for the same POST sent again. */
  unclaimed: UnclaimedNames;
  mayDelete: (handle: string) => boolean;
  reverseLookup?: ReverseLookup;
  freshness: Freshness;
  onStale: (reason: StaleReason) => void;
  onUnexpected: ReportUnexpected;
  now: () => number;
}

/** What all requests share. */
export interface V2SharedDeps extends Omit<V2Deps, 'run'> {
  limitMiss: LimitMiss;
  checksLogin: ChecksLogin;
  runStepsOf: RunStepsOf;
}

export interface V2Call {
  req: Request;
  res: Response;
  login: Login;
}
