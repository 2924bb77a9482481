// Keeps prepared responses by raw request target.
import type { Entry } from '../cache/entry.js';
import { type Beside, type Prepared, PreparedCache, type PreparedDeps } from '../cache/prepared-cache.js';
import { type HeaderLines, linesOf } from '../http/raw-response.js';
import type { Representation } from '../http/representation.js';

/** A response that depends only on its target and on entries in memory. */
export interface Hit {
  /** The raw request target. */
  target: string;
  handle: string;
  entry: Entry;
  status: number;
  made: Representation;
  beside?: Beside | undefined;
}

/** A representation that is ready to be sent. */
export interface PreparedVariant {
  /** The body, one character per byte, which Node sends with the headers in a single write. */
  body: string;
  /** Vary and ETag, which are in a 304 too; then encoding, type and length of the body. */
  head: HeaderLines;
  /** Length of the part of the head for a 304. */
  commonLength: number;
  etag: string | undefined;
}

/** A served hit, for log and metrics. All hits of a prepared response share one object: copy it to keep it. */
export interface AnsweredHit {
  family: 'record' | 'redirect';
  method: string;
  handle: string;
  /** Raw request target. */
  target: string;
  status: number;
}

/**
 * A prepared response, which is also the report of a plain GET: with many responses in memory, another object would cost
 * another CPU cache miss per hit.
 */
export interface PreparedResponse extends AnsweredHit, Prepared {
  identity: PreparedVariant | undefined;
  gzip: PreparedVariant | undefined;
  /** False if the body is too short for compression. */
  isWorthGzip: boolean;
}

export class ResponseCache {
  readonly #cache: PreparedCache<PreparedResponse>;

  constructor(deps: PreparedDeps) {
    this.#cache = new PreparedCache('http', deps, sizeOf);
  }

  /** The prepared response; undefined unless the resolver would still use the same entry. Counts as a hit of the entry. */
  currentResponse(target: string, now: number): PreparedResponse | undefined {
    return this.#cache.current(target, now);
  }

  /** Prepares the response to a hit; undefined if the entry is no longer in memory. */
  prepare(hit: Hit): PreparedResponse | undefined {
    const start = this.#cache.begin(hit.handle, hit.entry);
    if (start === undefined) return undefined;
    const known = this.#cache.get(hit.target);
    const prepared = known?.stamp === start.stamp ? known : newResponse(hit, start);
    prepared[hit.made.encoding] = variantOf(hit);
    prepared.beside = hit.beside;
    this.#cache.set(hit.target, prepared);
    return prepared;
  }
}

function newResponse({ target, handle, status, made }: Hit, start: Prepared): PreparedResponse {
  return {
    // The record interface never redirects.
    family: status === 301 || status === 302 ? 'redirect' : 'record',
    method: 'GET',
    handle,
    target,
    status,
    ...start,
    identity: undefined,
    gzip: undefined,
    isWorthGzip: made.isWorthGzip,
  };
}

function variantOf({ made: { body, common, ofBody, etag } }: Hit): PreparedVariant {
  const commonLines = linesOf(common);
  // Copied into a flat string, because a rope would be flattened for each response.
  const head = Buffer.from(commonLines + linesOf(ofBody), 'latin1').toString('latin1') as HeaderLines;
  return { body, head, commonLength: commonLines.length, etag };
}

/** Estimated bytes of headers, strings and map entry, measured with 100,000 responses. */
const OVERHEAD_BYTES = 700;

const sizeOf = (target: string, { identity, gzip }: PreparedResponse): number =>
  target.length + (identity?.body.length ?? 0) + (gzip?.body.length ?? 0) + OVERHEAD_BYTES;
