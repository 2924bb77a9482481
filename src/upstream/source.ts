// A record source: what a kind of server can do, and its protocol for anonymous reads.
import type { ConfiguredServer, ServerConfig } from '../config/upstream-servers.js';
import type { ServiceError } from '../errors.js';
import type { HandleRef } from '../handle/handle.js';
import type { Outcome } from '../handle/outcome.js';
import type { Steps } from '../time-slicer.js';
import type { ServerAccess } from './contract.js';
import type { UpstreamRequest } from './exchange.js';
import type { RecordClient } from './record-client.js';
import type { UpstreamReply } from './reply.js';
import type { UpstreamResponse } from './response.js';

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
  /** @throws ServiceError UPSTREAM_* for a failure */
  outcomeOf: (reply: UpstreamReply) => Steps<Outcome>;
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
      throw new Error(`${server.key}.kind: no plugin reads servers of the kind ${server.kind}`);
    return { ...server, source, readOnly: server.readOnly || !source.forwards };
  });

/** Asserts that a server, if any, takes requests besides anonymous reads. @throws ServiceError its refusal */
export function assertForwards(server: { source: RecordSource } | undefined): void {
  if (server?.source.forwards === false) throw server.source.refusal();
}
