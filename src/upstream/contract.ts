// The contracts of a server and of a kind of server: shared reads, requests of one caller, protocol and probe.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { HandleValue, Selection } from '../handle/value.js';
import type { ListPage, Outcome } from '../handle/outcome.js';
import type { ServerConfig } from '../config/upstream-servers.js';
import type { ServiceError } from '../errors.js';
import type { HandleRef } from '../handle/handle.js';
import type { TimeSlicer, Work } from '../time-slicer.js';
import type { Caller } from './caller.js';
import type { ConcurrencyLimiter, LimiterUsage } from './concurrency-limiter.js';
import type { UpstreamDispatcher, UpstreamRequest } from './exchange.js';
import type { ListAnswer, RecordAnswer, UpstreamReply } from './reply.js';
import type { UpstreamResponse } from './response.js';

/** The settings of a server, and those of `upstream` that all servers share. */
export interface ServerSettings extends SourceServer {
  caseSensitive: boolean;
  retryAfterMs: number;
  secondaryMaxTtlMs: number;
}

/** Parts that all calls to a server share. */
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
  /** Whether only a stored entry is wanted (RFC 9111 section 5.2.1.7). */
  onlyIfCached?: boolean | undefined;
}

export interface HandleRead extends ResolveOptions {
  handle: HandleRef;
}

export interface UpstreamClient {
  /** @throws ServiceError UPSTREAM_* or OVERLOADED */
  resolve: (read: HandleRead) => Promise<Outcome>;
  /**
   * Called before and after a write, and after a purge: for a while only the primary is asked for the key, or the keys with
   * the prefix. Undefined if there is no other server.
   */
  preferPrimary: ((changed: { key: string } | { prefix: string }) => void) | undefined;
}

/** Reads a handle, itself or by `next`: the later functions, and then the servers. @throws ServiceError UPSTREAM_* */
export type AroundRead = (read: HandleRead, next: () => Promise<Outcome>) => Promise<Outcome>;

/** A server with records, such as a Handle server or a repository, at one or more addresses (RFC 9110 §3.6). */
export interface OriginServer extends ServerSettings {
  /** Shared reads. */
  reads: UpstreamClient;
  /** Requests with one caller's credentials. */
  records: RecordClient;
  /** Lists the handles of a prefix. */
  list: RecordClient['list'];
  /** Forwards a request, under the same concurrency limit as `records`. */
  forward: ForwardRequest;
  /** Whether the server rejects a read with a wrong login. Over plain http it ignores logins. */
  checksLogins: boolean;
  /** Called when the server refuses a write because it ignored the login; undefined over https. */
  onIgnoredLogin: (() => void) | undefined;
  usage: () => { read: LimiterUsage; forwarded: LimiterUsage };
  close: () => Promise<void>;
}

export interface ReadOptions {
  authorization?: string | undefined;
  authoritative?: boolean;
  /** True requests public values only. With false, the server refuses unless the caller may read all values. */
  publicOnly?: boolean;
  /** Default: all values. */
  selection?: Selection;
  caller?: Caller | undefined;
}

export interface SendOptions {
  authorization?: string | undefined;
  caller?: Caller | undefined;
  /** Called just before the request is sent; an exception cancels the request. */
  beforeSend?: (() => void) | undefined;
}

/** Creates or replaces a record, adds or replaces values of an existing one, or removes values (default: the record). */
export type RecordChange = ValuesToPut | { kind: 'removal'; indexes?: readonly number[] };

interface ValuesToPut {
  kind: 'record' | 'values';
  values: readonly HandleValue[];
  /** With false, the server refuses if a record or value exists, checking and writing atomically. */
  overwrite: boolean;
}

export interface ListOptions extends ListPage {
  authorization?: string | undefined;
  caller?: Caller | undefined;
}

/** The other end of a client's connection, and whether it is a trusted proxy. */
export interface ClientPeer {
  address: string;
  isTrusted: boolean;
}

/** A client's request with the target and body to send. Its headers are adapted to this hop. */
export interface ForwardOptions extends SendOptions {
  target: string;
  body: Buffer;
  /** Whether the body may name a session, which only its own server receives. */
  isOfSessions?: boolean;
  handle?: HandleRef | undefined;
  peer: ClientPeer;
  requestId: string;
}

/** Forwards a request. Resolves to the response with its end-to-end headers. @throws ServiceError */
export type ForwardRequest = (
  req: IncomingMessage,
  res: ServerResponse,
  options: ForwardOptions,
) => Promise<IncomingMessage>;

/** A read response; `values` is undefined for a refusal. */
export interface RecordRead extends RecordAnswer {
  values: HandleValue[] | undefined;
}

/** Returns refusals (401, 403, 404, 409, 5xx in Handle JSON) as results. @throws ServiceError for an invalid response */
export interface RecordClient {
  get: (handle: HandleRef, options: ReadOptions) => Promise<RecordRead>;
  write: (handle: HandleRef, change: RecordChange, options: SendOptions) => Promise<RecordAnswer>;
  list: (prefix: string, options: ListOptions) => Promise<ListAnswer>;
}

/** A kind of server. */
export type RecordSource = {
  /** Value of `upstreams[].kind`. */
  readonly kind: string;
  /** Whether suffixes that differ only in case are different handles. */
  readonly keepsCase: boolean;
  /** Whether the server of a prefix may also hold the prefix record (`0.NA/<prefix>`). */
  readonly holdsPrefixRecords: boolean;
  protocol(settings: ServerConfig): SourceProtocol;
} & (Forwards | ReadsOnly);

/** Takes logins and writes: these, lists and all other requests are forwarded. */
interface Forwards {
  readonly forwards: true;
}

/** Only resolves and lists handles. All values are public, so that the cache also answers reads with a login. */
interface ReadsOnly {
  readonly forwards: false;
  /** The error of any other request. */
  readonly refusal: () => ServiceError;
  /** Creates the function that lists the handles of a prefix, in a Handle server's JSON. */
  createList(settings: ServerConfig, access: ServerAccess): RecordClient['list'];
}

/** The protocol of one server. All functions are pure. */
export interface SourceProtocol {
  /** Returns the request for a record, or the outcome if none is needed. */
  read: (handle: HandleRef, authoritative: boolean) => SourceRequest | Outcome;
  /**
   * Interprets a response; a body of an unexpected form is `invalidResponse` (response.ts). Any other exception is a 500, without
   * a stale record.
   *
   * @throws ServiceError UPSTREAM_* for a failure
   */
  outcomeOf: (reply: UpstreamReply) => Work<Outcome>;
  /** Returns the requests that check whether the address belongs to a server of this kind. */
  probe: (probeHandle: string) => ProbeQuestion;
}

export interface SourceRequest {
  method: UpstreamRequest['method'];
  path: string;
}

/** The requests of a probe, and the validation of its response. */
export interface ProbeQuestion extends SourceRequest {
  /** @throws ServiceError for a response from a different kind of server */
  check?: (response: UpstreamResponse) => void;
  /** Whether a redirect counts as success. */
  mayRedirect?: boolean;
  /** Path of the protocol version. Its response does not affect the result. */
  versionPath?: string;
}

/** A configured server and its kind. */
export interface SourceServer extends ServerConfig {
  source: RecordSource;
}

/** Adds the source of its kind to each server. @throws Error for a kind without a source */
export const withSources = (
  servers: readonly ServerConfig[],
  sources: readonly RecordSource[],
): SourceServer[] =>
  servers.map((server) => {
    const source = sources.find(({ kind }) => kind === server.kind);
    if (source === undefined)
      throw new Error(`${server.key}.kind: no plugin reads servers of the kind ${server.kind}`);
    return { ...server, source, readOnly: server.readOnly || !source.forwards };
  });
