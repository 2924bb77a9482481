// Prepared answers by raw request target, bounded in number and bytes.
import type { Times } from '../cache/entry.js';
import type { Held } from '../cache/memory/row-store.js';
import type { Lines } from '../http/raw-response.js';

/** One representation, ready to be sent. */
export interface Variant {
  /** The body, one character a byte: Node sends it together with the headers in one write. */
  body: string;
  /** Vary and ETag, which a 304 carries too; then what describes the body: its encoding, type and length. */
  head: Lines;
  /** How many characters of the head a 304 carries. */
  commonLength: number;
  etag: string | undefined;
}

/**
 * An answer to a target, good as long as the cache holds this very entry. It is itself what log and metrics
 * are told of a GET that gets the whole answer: with many answers each object more is one more to fetch.
 */
export interface Prepared extends HotAnswer, Held, Times {
  key: string;
  identity: Variant | undefined;
  gzip: Variant | undefined;
  /** False when the answer is too short to be compressed for anybody. */
  isWorthGzip: boolean;
  /** From here on (ms) the next request goes the long way once, which may refresh the entry ahead. */
  refreshAt: number;
}

/** What was answered, for log and metrics. One object serves all requests of an answer: it must not be kept. */
export interface HotAnswer {
  method: string;
  handle: string;
  /** Raw request target. */
  target: string;
  status: number;
}

export interface PreparedBounds {
  maxEntries: number;
  maxBytes: number;
}

/**
 * Two generations: what was not asked for while the young one filled up is dropped with the old one.
 * Looking up costs one Map look-up and keeps no list in order, as an LRU would.
 */
export class PreparedAnswers {
  readonly #bounds: PreparedBounds;
  #young = new Map<string, Prepared>();
  #old = new Map<string, Prepared>();
  #youngBytes = 0;

  constructor(bounds: PreparedBounds) {
    this.#bounds = bounds;
  }

  get(target: string): Prepared | undefined {
    const prepared = this.#young.get(target);
    if (prepared !== undefined) return prepared;
    const aged = this.#old.get(target);
    if (aged !== undefined) this.set(target, aged);
    return aged;
  }

  set(target: string, prepared: Prepared): void {
    this.#old.delete(target);
    this.#young.set(target, prepared);
    this.#youngBytes += sizeOf(target, prepared);
    if (this.#young.size * 2 > this.#bounds.maxEntries || this.#youngBytes * 2 > this.#bounds.maxBytes)
      this.#age();
  }

  delete(target: string): void {
    this.#young.delete(target);
    this.#old.delete(target);
  }

  get size(): number {
    return this.#young.size + this.#old.size;
  }

  #age(): void {
    this.#old = this.#young;
    this.#young = new Map();
    this.#youngBytes = 0;
  }
}

/** Headers, the strings around them and the Map's own share, measured with 100,000 answers. */
const OVERHEAD_BYTES = 700;

const sizeOf = (target: string, { identity, gzip }: Prepared): number =>
  target.length + (identity?.body.length ?? 0) + (gzip?.body.length ?? 0) + OVERHEAD_BYTES;
