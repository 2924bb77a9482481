// The contract between redirects and the plugins that add to them.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Dependency } from '../cache/prepared-cache.js';
import type { ServiceError } from '../errors.js';
import type { HandleRef } from '../handle/handle.js';
import type { HandleValue } from '../handle/value.js';
import type { RequestContext } from '../http/context.js';
import type { FromEntry } from '../resolver/resolution.js';
import type { Steps } from '../time-slicer.js';
import type { RedirectQuery } from './request.js';

/** The URL of a value, or the reason for its rejection. */
export type RedirectUrl =
  | { ok: true; url: string }
  | { ok: false; problem: 'scheme' | 'malformed' | 'too-long' | 'host' };

export type HeaderLine = readonly [name: string, value: string];

/** The request for a handle at the end of its alias chain. */
export interface RedirectRequest {
  req: IncomingMessage;
  res: ServerResponse;
  context: RequestContext;
  handle: HandleRef;
  resolution: FromEntry;
  query: RedirectQuery;
  /** The values that affect redirects and match the query; none if the handle does not exist. */
  values: readonly HandleValue[];
}

export interface ChosenTarget {
  /** The unescaped URL from the record. */
  text: string;
  /** The URL value; undefined for a URL from elsewhere. */
  value: HandleValue | undefined;
  /** Describes the choice to readers; undefined for the first URL value. */
  reason?: () => string;
}

/** The request properties on which a target depends. */
export interface Variation {
  /** Header names for `Vary`. */
  headers: readonly string[];
  /** Whether the target depends on the client address. */
  isByAddress: boolean;
}

export const NO_VARIATION: Variation = { headers: [], isByAddress: false };

export interface FoundTarget {
  /** Undefined for a record without a URL. */
  chosen: ChosenTarget | undefined;
  status: number;
  /** Whether a repeated request may get a different target. */
  isRandom: boolean;
  variation: Variation;
  /** Headers set by the record. */
  headers: readonly HeaderLine[];
}

export interface RedirectTarget extends FoundTarget {
  /** The URL of `chosen`, or the reason for its rejection. */
  url: RedirectUrl | undefined;
}

/** The redirect of a record by more than its URL values. */
export interface Finding {
  /** The target, or the text that shows all possible targets. */
  result: FoundTarget | { contentType: string; text: string };
  /** The records besides that of the handle that bound the lifetime of the response. */
  used: readonly FromEntry[];
  /** Whether the response depends only on the record and on what `dependencyOf` returns. */
  isOfRecordAlone: boolean;
  /** False if reading another record failed; the response is then uncacheable. */
  isComplete: boolean;
}

/** A request of which a plugin takes part in the response. */
export interface StartedRequest {
  /** The error for this handle, whether it exists or not. */
  failure?: ServiceError | undefined;
  /** The operator's contact, for error pages. */
  contact?: string | undefined;
  /** The record, besides that of the handle, that `failure` and `contact` depend on. */
  record?: FromEntry | undefined;
  /** Returns undefined if URL values alone decide. */
  find?: () => Promise<Finding | undefined>;
}

/** Returns what a redirect by URL values depends on besides its record; undefined if more may affect it. */
type DependencyOf = (handle: HandleRef, now: number) => Dependency | undefined;

/** A record that is answered with a redirect or with its page. */
export interface LinkedRecord {
  handle: string;
  /** The redirect target; undefined if the handle shows its record page. */
  target: string | undefined;
  /** Headers set by the record. */
  headers: readonly HeaderLine[];
}

/** The typed links of a record (RFC 8288). */
export interface RecordLinks {
  onRedirect: () => HeaderLine[];
  onPage?: () => HeaderLine[];
  /** Returns the links as a link set (RFC 9264); the first plugin with one answers requests for it. */
  linkset?: (contentType: string) => string;
}

/** Derives the typed links of a record from its selected values. */
export type ReadLinks = (values: readonly HandleValue[], record: LinkedRecord) => Steps<RecordLinks>;

export interface ProblemView {
  failure: ServiceError;
  handle: string | undefined;
  /** Undefined for a cacheable page. */
  requestId: string | undefined;
  /** Relative URL to retry the request. */
  retryUrl: string;
  /** The prefix operator's contact from the prefix record. */
  contact: string | undefined;
}

export interface RecordView {
  handle: string;
  /** The aliases that led to this handle. */
  aliases: readonly string[];
  /** The values that match the request's selection. */
  values: readonly HandleValue[];
  target: RedirectTarget;
  resolution: FromEntry;
  authoritative: boolean;
  now: number;
  /** The same time by the wall clock. */
  wallTime: number;
}

/** Pages for browsers, as HTML. Without them, records and errors are JSON for every client. */
export interface Pages {
  /** Headers that restrict what pages may load. */
  securityHeaders: Readonly<Record<string, string>>;
  /** The page at `/`. */
  front: string;
  problem: (view: ProblemView) => string;
  record: (view: RecordView) => Steps<string>;
}

/** The functions of a plugin. Those without a promise run for each redirect from memory. */
export interface RedirectExtension {
  /** Families of value types that affect redirects besides URL and HS_ALIAS, in upper case. */
  readonly types?: readonly string[];
  /**
   * Matches the text of records with such types, or with HS_ALIAS: one scan of a record is cheaper than two.
   * Such a record is not parsed for a redirect by URL values.
   */
  readonly pattern?: RegExp;
  readonly dependencyOf?: DependencyOf | undefined;
  readonly startRequest?: (request: RedirectRequest) => StartedRequest | Promise<StartedRequest>;
  readonly readLinks?: ReadLinks | undefined;
  readonly pages?: Pages;
}

/** The functions of all plugins; a list that is empty costs a redirect nothing. */
export type Extensions = ReturnType<typeof joinExtensions>;

export const joinExtensions = (all: readonly RedirectExtension[]) => ({
  types: all.flatMap(({ types = [] }) => types),
  patterns: withDefault(all.flatMap(({ pattern = [] }) => pattern)),
  dependencyOf: joinDependencies(all.flatMap(({ dependencyOf = [] }) => dependencyOf)),
  startRequest: all.flatMap(({ startRequest = [] }) => startRequest),
  readLinks: all.flatMap(({ readLinks = [] }) => readLinks),
  pages: all.find(({ pages }) => pages !== undefined)?.pages,
});

const withDefault = (patterns: readonly RegExp[]): readonly RegExp[] =>
  patterns.length === 0 ? [/HS_ALIAS/i] : patterns;

function joinDependencies(all: readonly DependencyOf[]): DependencyOf {
  const [first] = all;
  if (first !== undefined && all.length === 1) return first;
  return (handle, now) => {
    const found = all.map((each) => each(handle, now));
    if (found.includes(undefined)) return undefined;
    return { isCurrent: (at) => found.every((each) => each?.isCurrent(at)) };
  };
}
