// Prepared responses by raw request target.
import type { Entry } from '../cache/entry.js';
import { type Beside, type Prepared, PreparedCache, type PreparedDeps } from '../cache/prepared-cache.js';
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
  beside?: Beside | undefined;
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
  family: 'record' | 'redirect';
  method: string;
  handle: string;
  /** Raw request target. */
  target: string;
  status: number;
}

/**
 * Also the report of a GET with the whole response: with many responses in memory, each further object would be one
 * more CPU cache line to fetch.
 */
export interface PreparedResponse extends AnsweredHit, Prepared {
  identity: PreparedVariant | undefined;
  gzip: PreparedVariant | undefined;
  /** False when the body is too short to be compressed. */
  isWorthGzip: boolean;
}

export class ResponseCache {
  readonly #cache: PreparedCache<PreparedResponse>;

  constructor(deps: PreparedDeps) {
    this.#cache = new PreparedCache('http', deps, sizeOf);
  }

  /** The prepared response, if the resolver would answer with the same entry now. Counts as a use of the entry. */
  currentResponse(target: string, now: number): PreparedResponse | undefined {
    return this.#cache.current(target, now);
  }

  /** Prepares the response to a hit; undefined when memory no longer holds its entry. */
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
  // Copied into one flat string: a rope of many pieces would be flattened for each response.
  const head = Buffer.from(commonLines + linesOf(ofBody), 'latin1').toString('latin1') as HeaderLines;
  return { body, head, commonLength: commonLines.length, etag };
}

/** Headers, the strings around them and the Map's own share, measured with 100,000 responses. */
const OVERHEAD_BYTES = 700;

const sizeOf = (target: string, { identity, gzip }: PreparedResponse): number =>
  target.length + (identity?.body.length ?? 0) + (gzip?.body.length ?? 0) + OVERHEAD_BYTES;
