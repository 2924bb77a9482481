// A record source: what a kind of server can do, and its protocol for anonymous reads.
import type { ConfiguredServer, ServerConfig } from '../config/upstream-servers.js';
import type { ServiceError } from '../errors.js';
import type { HandleRef } from '../handle/handle.js';
import type { Outcome } from '../handle/outcome.js';
import type { Steps } from '../time-slicer.js';
import type { UpstreamRequest } from './exchange.js';
import type { UpstreamReply } from './reply.js';
import type { UpstreamResponse } from './response.js';

/** The configuration of a server, or of its secondary at `url`. */
export type SourceSettings = Pick<ServerConfig, 'url' | 'prefixes'> &
  Partial<Pick<ServerConfig, 'existenceCheck'>>;

/** A kind of server. */
export type RecordSource = {
  /** Value of `upstreams[].kind`. */
  readonly kind: string;
  /** Whether suffixes that differ only in case are different handles. */
  readonly keepsCase: boolean;
  /** Whether the server of a prefix may also hold the prefix record (`0.NA/<prefix>`). */
  readonly holdsPrefixRecords: boolean;
  protocol(settings: SourceSettings): SourceProtocol;
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
}

/** The protocol of one server. All functions are pure. */
export interface SourceProtocol {
  /** Returns the request for a record, or the outcome if none is needed. */
  read: (handle: HandleRef, authoritative: boolean) => SourceRequest | Outcome;
  /** @throws ServiceError UPSTREAM_* for a failure */
  outcomeOf: (reply: UpstreamReply) => Steps<Outcome>;
  /** Lists handles, unless lists are forwarded; undefined if the server has none. */
  list?: {
    pathOf: (prefix: string) => string;
    /** Returns the listed handles; undefined if lists are hidden. @throws ServiceError UPSTREAM_* */
    handlesIn: (response: UpstreamResponse) => string[] | undefined;
  };
  /** Returns the requests that check whether the address belongs to a server of this kind. */
  probe: (probeHandle: string) => ProbeQuestion;
}

export type SourceRequest = Pick<UpstreamRequest, 'method' | 'path'>;

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
export interface SourceServer extends ConfiguredServer {
  source: RecordSource;
}

/** Adds the source of its kind to each server. @throws Error for a kind without a source */
export const withSources = (
  servers: readonly ConfiguredServer[],
  sources: readonly RecordSource[],
): SourceServer[] =>
  servers.map((server) => {
    const source = sources.find(({ kind }) => kind === server.kind);
    if (source === undefined)
      throw new Error(`${server.key}.kind: nothing here reads a ${server.kind} server`);
    return { ...server, source, readOnly: server.readOnly || !source.forwards };
  });

/** Asserts that a server, if any, takes requests besides anonymous reads. @throws ServiceError its refusal */
export function assertForwards(server: Pick<SourceServer, 'source'> | undefined): void {
  if (server?.source.forwards === false) throw server.source.refusal();
}
