// The contract of a server: reads that all callers share, and requests with one caller's credentials.
import type { HandleRef } from '../handle/handle.js';
import type { Outcome } from '../handle/outcome.js';
import type { Caller } from './caller.js';
import type { ConcurrencyLimiter, LimiterUsage } from './concurrency-limiter.js';
import type { Connections } from './connections.js';
import type { UpstreamDispatcher } from './exchange.js';
import type { TimeSlicer } from '../time-slicer.js';
import type { RecordClient } from './record-client.js';
import type { Sessions } from './sessions.js';
import type { SourceServer } from './source.js';

/** The settings of a server, and those of `upstream` that all servers share. */
export interface ServerSettings extends SourceServer {
  caseSensitive: boolean;
  retryAfterMs: number;
  secondaryMaxTtlMs: number;
}

/** What all calls to a server share. */
export interface ServerAccess {
  /** This proxy's name in `Via` (RFC 9110 §7.6.3), used to detect loops. */
  pseudonym: string;
  dispatcher: UpstreamDispatcher;
  limiter: ConcurrencyLimiter;
  /** Processes large records in time slices. */
  slicer: TimeSlicer;
}

export interface ResolveOptions {
  authoritative: boolean;
  /** Default: an unknown client of class `normal`. */
  caller?: Caller | undefined;
  /** Whether only configured servers are asked. */
  noFallback?: boolean | undefined;
}

export interface HandleRead extends ResolveOptions {
  handle: HandleRef;
}

export interface UpstreamClient {
  /** @throws ServiceError UPSTREAM_* or OVERLOADED */
  resolve: (read: HandleRead) => Promise<Outcome>;
  /** Called before and after a write: for a while only the primary is asked for the handle. */
  preferPrimary: (key: string) => void;
  /** Total usage of all servers. */
  usage: () => LimiterUsage;
}

/** Reads a handle that no configured server holds; undefined if it cannot be elsewhere. @throws ServiceError UPSTREAM_* */
export type ReadFallback = (read: HandleRead) => Promise<Outcome> | undefined;

/** A server with records, such as a Handle server or a repository, at one or more addresses (RFC 9110 §3.6). */
export interface OriginServer extends ServerSettings {
  /** Shared reads. */
  reads: UpstreamClient;
  /** Requests with one caller's credentials. */
  records: RecordClient;
  /** Lists the handles of a prefix. */
  list: RecordClient['list'];
  /** Agent for forwarded requests, which share the limiter with `records`. */
  writeAgent: Connections['writeAgent'];
  limiter: ConcurrencyLimiter;
  sessions: Sessions;
  /** Whether the server rejects a read with a wrong login. Over plain http it ignores logins. */
  checksLogins: boolean;
  /** Called when the server refuses a write because it ignored the login; undefined over https. */
  onIgnoredLogin: (() => void) | undefined;
  usage: () => { read: LimiterUsage; forwarded: LimiterUsage };
  close: Connections['close'];
}
