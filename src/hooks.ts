// The places where a plugin takes part in the core. Each is a list that is filled at start, in the order of
// `app/plugins.ts`, and never changes afterwards; an empty list costs nothing.
import type { Socket } from 'node:dgram';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server, Socket as TcpSocket } from 'node:net';
import { createStoreEvents, hookList } from './cache/store.js';
import type { Entry } from './cache/entry.js';
import type { PrefixPeriod } from './config/fields.js';
import type { ServiceError } from './errors.js';
import type { RequestContext } from './http/context.js';
import type { PreparedHit } from './observe/hits.js';
import type { LabelValue } from './observe/metric-list.js';
import type { AroundMiss, Caller, CallerClass } from './upstream/caller.js';
import type { AroundRead, OriginServer } from './upstream/contract.js';
import type { Config } from './config/schema.js';
import type { HeaderLine, RedirectExtension } from './redirect/extension.js';
import type { ListPage, LoggedChange } from './handle/outcome.js';
import type { HandleRef } from './handle/handle.js';

export interface AnsweredRead {
  handle: HandleRef;
  /** An interface of the metrics, or a name of a plugin's own. */
  interface: LabelValue<'interface'> | (string & {});
  exists: boolean;
}

/** A request for the list of a prefix. */
export interface ListRequest {
  method: string;
  hasLogin: boolean;
  parameters: URLSearchParams;
}

/** The list of a prefix without a request to its server. */
export interface KnownList {
  handles: readonly string[];
  page: ListPage;
  /** Time at which the list was requested (ms). */
  listedAt: number;
  /** `detail` of `Cache-Status` (RFC 9211 §2.8). */
  detail: string;
}

/** The span of a request that is being answered. */
export interface RequestSpan {
  readonly traceId: string;
  /** Adds attributes. */
  describe: (attributes: Readonly<Record<string, string | number>>) => void;
}

/** The span of a native message. */
export interface MessageSpan extends RequestSpan {
  end: (isFailure: boolean) => void;
}

type RequestListener = (req: IncomingMessage, res: ServerResponse) => unknown;

export type TakeConnection = (socket: TcpSocket, serve: () => void) => void;

/** Records spans of requests, and of the calls that answer them. */
export interface Spans {
  /** Records the requests of a listener. */
  wrap: (listener: RequestListener) => RequestListener;
  /** Starts a trace for a native message. */
  run: <T>(name: string, work: (span: MessageSpan) => T) => T;
  /** Returns the span of the current request or message. */
  current: () => RequestSpan | undefined;
  /** Adds a call that has just ended to the current trace. */
  addCall: (call: { name: string; durationMs: number; result: string; isFailure: boolean }) => void;
}

/** A listener that is not yet open. */
export interface ClosedListener {
  scheme: string;
  /** The configuration keys of its address. */
  keys: { host: string; port: string };
  at: ListenAddress;
  socket: Server | Socket;
}

/** A listener besides the public and the admin listener. */
export interface PluginListener extends ClosedListener {
  /** Name of its URL in the log. */
  name: string;
  /** Stops accepting, and closes once the responses in progress are sent, or after the timeout. */
  drain: (timeoutMs: number) => Promise<void>;
}

export interface ListenAddress {
  host: string;
  port: number;
  /** Whether other processes may share the TCP port. UDP sockets set this option at creation. */
  reusePort?: boolean;
}

/** A search for the handles of a prefix by their values. */
export interface SearchQuery {
  prefix: string;
  /** Types and patterns that the values of a handle must match. */
  conditions: readonly (readonly [type: string, pattern: string])[];
  limit: number;
  /** The caller's `Authorization` header for the Handle server. */
  authorization?: string | undefined;
  caller?: Caller | undefined;
}

export interface SearchService {
  /** Whether the service receives the caller's Handle server login. */
  forwardsLogin: boolean;
  /** Returns the matching handles, or the login refusal. @throws ServiceError UPSTREAM_* */
  find: (query: SearchQuery) => Promise<string[] | 'unauthorized' | 'forbidden'>;
}

/** A request to the public listener that is judged before it is answered. */
export interface JudgedRequest {
  req: IncomingMessage;
  res: ServerResponse;
  /**
   * `handleNamedBy` reads its handle, because no handler has parsed it yet. The `id` of its route tells writes from logins and
   * other requests with the same methods.
   */
  place: RequestContext;
  /** Address of the client, even behind trusted proxies. */
  address: string;
}

export interface Judgement {
  /** The error that rejects the request. */
  refusal?: ServiceError | undefined;
  /** Class of the caller; by default its `Priority` header determines it. */
  callerClass?: CallerClass | undefined;
  /** Returns the error that rejects a handle which the request names in its body. */
  refusalOfHandle?: (handle: HandleRef) => ServiceError | undefined | Promise<ServiceError | undefined>;
  /** Charges a request with many handles for `more` additional ones. @throws ServiceError */
  charge?: (more: number) => Promise<void>;
}

/** Judges requests; each is judged once, at the latest before it is sent to the Handle server. */
export interface RequestJudge {
  /** Whether requests over HTTP are judged before they are answered from memory. Native messages never are. */
  readonly judgesHits?: boolean;
  /** Whether each handle in a body is judged. */
  readonly judgesHandles?: boolean;
  judge: (request: JudgedRequest) => Judgement | Promise<Judgement>;
  /** Judges a miss over TCP; by default each is admitted. Over UDP, the sender may be forged. */
  judgeMessage?: (message: { address: string; handle: HandleRef }) => Judgement | Promise<Judgement>;
}

export type Hooks = ReturnType<typeof createHooks>;

export const createHooks = () => ({
  ...createStoreEvents(),
  /** Receives a connection of the public listener, and calls `serve` before its first request, or destroys it. */
  connection: hookList<TakeConnection>(),
  /** Creates a judge of requests, at the start and at each reload; undefined if all are admitted. */
  admission: hookList<() => RequestJudge | undefined>(),
  /** Runs or rejects a read that misses in memory. */
  aroundMiss: hookList<AroundMiss>(),
  /** Added by the core alone, for the plugin of a protocol: asks `judgeMessage` of each judge. @throws ServiceError */
  admitMessage: hookList<(address: string, handle: HandleRef) => Caller | Promise<Caller>>(),
  /** A server with the records of all prefixes, which is asked for them last. */
  root: hookList<OriginServer>(),
  /**
   * Reads a handle instead of its server, or after it, on a miss in memory and Redis: to change an answer, also purge the
   * handle. An error lets readers have a stale entry, and is kept for `upstream.retryAfter`. Not called for a read
   * with a login or of private values, unless the handle has a repository or `kind: none` as its server.
   */
  read: hookList<AroundRead>(),
  /** Creates what a plugin adds to redirects, at the start and at each reload. */
  redirect: hookList<(settings: Config) => RedirectExtension>(),
  /**
   * Returns headers of a response that depends on the stored records of these handles alone: the JSON of a record (one handle), a
   * redirect (two: the handle, and the record of its prefix). A prepared response repeats them until its entry changes: for a
   * header that changes with time, also return a `dependencyOf` that ends then (hook `redirect`); a record has no such bound.
   * Not called for an alias, a target chosen by the request, a page or the JSON in its place, a 404 of a redirect, an error, an
   * answer that is not stored, a forwarded read (login, list) or ePIC v2. Values are sent as UTF-8 (RFC 9110 §5.5); a control
   * character makes the response a 500. The values of a record: `valuesOf` in `resolver/parsed-records.ts` of
   * `host.cache.memory.inspect(key)?.entry`.
   */
  recordHeaders: hookList<(handles: readonly HandleRef[]) => readonly HeaderLine[]>(),
  /** A read is answered with a fresh entry. */
  hit: hookList<(handle: HandleRef, entry: Entry) => void>(),
  /** A prepared response is sent without asking the resolver; `key` is the key of its entry. */
  repeat: hookList<(key: string) => void>(),
  /** A prepared response is sent. Copy `hit` to keep it. */
  sentPrepared: hookList<(hit: PreparedHit) => void>(),
  /** An anonymous read of a handle has an answer, which is not a prepared response. A judge sees the client of a request. */
  answered: hookList<(read: AnsweredRead) => void>(),
  /** An anonymous read of a handle has an error of a server or of this proxy instead of an answer. */
  failed: hookList<(handle: HandleRef) => void>(),
  /** A hit is compared with the record at the Handle server. */
  compared: hookList<(handle: HandleRef, isCurrent: boolean) => void>(),
  /** An anonymous read is attributed to a robot. */
  robotRead: hookList<(handle: HandleRef) => void>(),
  /** Records the changes of a write or a purge, in order. Never throws; the response waits for it. */
  changed: hookList<(changes: readonly LoggedChange[]) => Promise<void>>(),
  /** Returns a minimum TTL of a not-found answer (ms); a `cache.notFound.ttl` of 0 wins. */
  notFoundTtlMs: hookList<(key: string) => number>(),
  /** A period of `cache.staleIfError` for prefixes that the key does not list. */
  stalePeriod: hookList<PrefixPeriod>(),
  /** Returns a list of handles that this instance may serve to anyone; otherwise the Handle server is asked. */
  list: hookList<(prefix: string, request: ListRequest) => KnownList | undefined>(),
  /** Finds handles by their values; without any, a search reads the list of the prefix. */
  search: hookList<SearchService>(),
  spans: hookList<Spans>(),
  /** Settles once the plugin has put its records into memory. Never rejects. */
  restored: hookList<Promise<void>>(),
  /** Returns members of `GET /stats`. */
  statistics: hookList<() => object>(),
  /** Returns members of the data of the status page, besides those of `GET /stats`; `render.js` in `plugins/admin` shows them. */
  status: hookList<() => object>(),
  /** Ends timers and connections. All run concurrently, so that a slow function does not use up the time of the others. */
  close: hookList<() => void | Promise<void>>(),
});

/** Returns the first answer of a list of functions; undefined if none has one. */
export function firstOf<F, T>(functions: readonly F[], ask: (each: F) => T | undefined): T | undefined {
  for (const each of functions) {
    const answer = ask(each);
    if (answer !== undefined) return answer;
  }
  return undefined;
}
