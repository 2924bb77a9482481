// What the calls of ePIC v2 work with.
import type { Request, Response } from 'express';
import type { WithBody } from '../http/request-body.js';
import type { Resolution, StaleReason } from '../resolver/resolution.js';
import type { Resolver } from '../resolver/resolver.js';
import type { RecordClient } from '../upstream/record-client.js';
import type { ReverseLookup } from '../upstream/reverse-lookup.js';
import type { Login } from './login.js';

export interface V2Settings {
  anonymousRead: boolean;
  realm: string;
  /** What stands before `/api/v2/handles` in a Location; null: as the client asked. */
  publicUrl: string | null;
  /** Without their slash. */
  prefixes: readonly string[];
  identities: ReadonlyMap<string, string>;
  /** The HS_ADMIN that is added; `{prefix}` and `{identity}` in `handle` are filled in. */
  admin: { index: number; handle: string; adminIndex: number; permissions: string };
  search: { maxHandles: number; concurrency: number };
  maxBodyBytes: number;
  clientMaxAgeMs: number;
}

export interface V2Deps {
  settings: V2Settings;
  withBody: WithBody;
  records: RecordClient;
  resolve: (handle: string, options: { authoritative: boolean }) => Promise<Resolution>;
  fence: Resolver<unknown>['fence'];
  /**
   * Reads, then does the work with what was read while nobody else changes the handle, over all instances.
   * `holder` is the caller, whose read comes first: a login that is refused there holds nothing.
   */
  lock: <S, T>(
    handle: string,
    locked: { holder: string; read: () => Promise<S>; work: (state: S) => Promise<T> },
  ) => Promise<T>;
  /** Names of POSTs that ended without their client hearing of it, for the same POST sent again. */
  unclaimed: {
    leave: (ask: string, handle: string) => Promise<void>;
    claim: (ask: string) => Promise<string | undefined>;
  };
  mayDelete: (handle: string) => boolean;
  reverseLookup?: ReverseLookup;
  onStale: (reason: StaleReason) => void;
  onUnexpected: (error: unknown) => void;
  now: () => number;
}

/** One request of a caller who logged in. */
export interface Call {
  req: Request;
  res: Response;
  login: Login;
}
