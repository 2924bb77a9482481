// Prepared responses by raw request target: valid as long as memory holds the entry they were made of.
import type { Entry, Times } from '../cache/entry.js';
import { isFresh, isNearEnd } from '../cache/policy.js';
import type { EntryPin, PinnedEntries } from '../cache/store.js';
import { type HeaderLines, linesOf } from '../http/raw-response.js';
import type { Representation } from '../http/representation.js';

/** A response that depends on nothing but its target and an entry in memory. */
export interface Hit {
  /** The raw request target. */
  target: string;
  handle: string;
  entry: Entry;
  status: number;
  made: Representation;
  /** What else must still be as it was; undefined: nothing. */
  beside?: Beside | undefined;
}

/** The state of other entries that a response depends on, shared by all responses with the same. */
export interface Beside {
  isCurrent: (now: number) => boolean;
}

/** One representation, ready to be sent. */
export interface PreparedVariant {
  /** The body, one character per byte: Node sends it together with the headers in one write. */
  body: string;
  /** Vary and ETag, which a 304 has too; then encoding, type and length of the body. */
  head: HeaderLines;
  /** Length of the part of the head that a 304 has. */
  commonLength: number;
  etag: string | undefined;
}

/** An answered hit, for log and metrics. One object serves all hits of a prepared response: copy it to keep it. */
export interface AnsweredHit {
  method: string;
  handle: string;
  /** Raw request target. */
  target: string;
  status: number;
}

/** The record interface never redirects. */
export const isRedirect = ({ status }: Pick<AnsweredHit, 'status'>): boolean =>
  status === 301 || status === 302;

/**
 * Also the report of a GET with the whole response: with many responses in memory, each further object would be one
 * more CPU cache line to fetch.
 */
export interface PreparedResponse extends AnsweredHit, EntryPin, Times {
  key: string;
  identity: PreparedVariant | undefined;
  gzip: PreparedVariant | undefined;
  /** False when the body is too short to be compressed. */
  isWorthGzip: boolean;
  /** The resolver has handled a read near the end of the TTL, and may have started a refresh. */
  isRefreshOffered: boolean;
  beside: Beside | undefined;
}

interface ResponseCacheDeps {
  /** `maxEntries` 0 turns the cache off. */
  bounds: { maxEntries: number; maxBytes: number };
  memory: PinnedEntries;
  keyOf: (handle: string) => string;
  /** Entries from before this moment (ms) may have missed an invalidation. */
  trustedSince: () => number;
}

/**
 * Two generations: a response that is not used while the young generation fills up is dropped with the old one. A
 * look-up is one Map look-up, without the list of an LRU.
 */
export class ResponseCache {
  readonly #deps: ResponseCacheDeps;
  #young = new Map<string, PreparedResponse>();
  #old = new Map<string, PreparedResponse>();
  #youngBytes = 0;

  constructor(deps: ResponseCacheDeps) {
    this.#deps = deps;
  }

  /** The prepared response, if the resolver would answer with the same entry now. Counts as a use of the entry. */
  currentResponse(target: string, now: number): PreparedResponse | undefined {
    const prepared = this.#get(target);
    if (prepared === undefined) return undefined;
    const { memory, trustedSince } = this.#deps;
    // False when the entry was invalidated, replaced or distrusted.
    if (!memory.touchIfCurrent(prepared.key, prepared)) {
      this.#young.delete(target);
      this.#old.delete(target);
      return undefined;
    }
    if (!isFresh(prepared, now, trustedSince())) return undefined;
    if (prepared.beside !== undefined && !prepared.beside.isCurrent(now)) return undefined;
    if (!isNearEnd(prepared, now) || prepared.isRefreshOffered) return prepared;
    prepared.isRefreshOffered = true;
    return undefined;
  }

  /** Prepares the response to a hit; undefined when memory no longer holds its entry. */
  prepare(hit: Hit): PreparedResponse | undefined {
    const key = this.#deps.keyOf(hit.handle);
    const pin = this.#deps.memory.pin(key, hit.entry);
    if (pin === undefined) return undefined;
    const known = this.#get(hit.target);
    const prepared = known?.stamp === pin.stamp ? known : newResponse(hit, key, pin);
    prepared[hit.made.encoding] = variantOf(hit);
    prepared.beside = hit.beside;
    if (this.#deps.bounds.maxEntries > 0) this.#set(hit.target, prepared);
    return prepared;
  }

  #get(target: string): PreparedResponse | undefined {
    const prepared = this.#young.get(target);
    if (prepared !== undefined) return prepared;
    const aged = this.#old.get(target);
    if (aged !== undefined) this.#set(target, aged);
    return aged;
  }

  #set(target: string, prepared: PreparedResponse): void {
    const { maxEntries, maxBytes } = this.#deps.bounds;
    this.#old.delete(target);
    this.#young.set(target, prepared);
    this.#youngBytes += sizeOf(target, prepared);
    if (this.#young.size * 2 <= maxEntries && this.#youngBytes * 2 <= maxBytes) return;
    this.#old = this.#young;
    this.#young = new Map();
    this.#youngBytes = 0;
  }
}

function newResponse(
  { target, handle, entry, status, made, beside }: Hit,
  key: string,
  pin: EntryPin,
): PreparedResponse {
  return {
    method: 'GET',
    handle,
    target,
    status,
    key,
    at: pin.at,
    stamp: pin.stamp,
    requestedAt: entry.requestedAt,
    staleAt: entry.staleAt,
    isRefreshOffered: false,
    identity: undefined,
    gzip: undefined,
    isWorthGzip: made.isWorthGzip,
    beside,
  };
}

function variantOf({ made: { body, common, ofBody, etag } }: Hit): PreparedVariant {
  const commonLines = linesOf(common);
  // Copied into one flat string: a rope of many pieces would be flattened for each response.
  const head = Buffer.from(commonLines + linesOf(ofBody), 'latin1').toString('latin1') as HeaderLines;
  return { body: body.toString('latin1'), head, commonLength: commonLines.length, etag };
}

/** Headers, the strings around them and the Map's own share, measured with 100,000 responses. */
const OVERHEAD_BYTES = 700;

const sizeOf = (target: string, { identity, gzip }: PreparedResponse): number =>
  target.length + (identity?.body.length ?? 0) + (gzip?.body.length ?? 0) + OVERHEAD_BYTES;
