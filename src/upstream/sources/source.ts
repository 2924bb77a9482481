// Record sources: each builds the requests for one kind of server and interprets its responses.
import type { ServerConfig } from '../../config/upstream-servers.js';
import { toBytes } from '../../handle/bytes.js';
import type { HandleRef } from '../../handle/handle.js';
import { writeJson } from '../../handle/json.js';
import type { Found, Outcome } from '../../handle/outcome.js';
import type { Steps } from '../../time-slicer.js';
import type { UpstreamRequest } from '../exchange.js';
import type { UpstreamReply } from '../reply.js';
import { type UpstreamResponse, invalidResponse } from '../response.js';

/** The configuration of a server, or of its secondary at `url`. */
export type SourceSettings = Pick<ServerConfig, 'url' | 'prefixes'> &
  Partial<Pick<ServerConfig, 'existenceCheck'>>;

/** The protocol of one kind of server. All functions are pure. */
export interface RecordSource {
  /** Returns the request for a record, or the outcome if none is needed. */
  read: (handle: HandleRef, authoritative: boolean) => SourceRequest | Outcome;
  /** @throws ServiceError UPSTREAM_* for a failure */
  outcomeOf: (reply: UpstreamReply) => Steps<Outcome>;
  /** Lists handles at a repository; undefined if unsupported. Handle servers' lists are relayed instead. */
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

/** Readable by administrators and the public, not writable. */
const PERMISSIONS = '1010';

/** The timestamp of DSpace's plugin for CNRI's server: 100 s after the epoch (HandlePlugin.java). */
const TIMESTAMP = '1970-01-01T00:01:40Z';

/** Builds a repository's record, which has a single URL value. */
export function urlRecord(url: string, { index, ttl }: { index: number; ttl: number }): Found {
  const data = { format: 'string', value: url };
  const value = { index, type: 'URL', data, permissions: PERMISSIONS, ttl, timestamp: TIMESTAMP };
  return { kind: 'found', values: toBytes(writeJson([value])), ttls: [ttl] };
}

/** @throws ServiceError UPSTREAM_INVALID_RESPONSE unless the text is an absolute http(s) URL */
export function assertWebUrl(text: string, response: UpstreamResponse): void {
  const isWebUrl = /^https?:\/\/[^/\s]/i.test(text) && !/\p{Cc}/u.test(text) && URL.canParse(text);
  if (!isWebUrl) throw invalidResponse('a record without a web address', response);
}
