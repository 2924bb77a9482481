// Stores texts outside the V8 heap, so that garbage collection neither visits nor copies them. Figures: ../README.md.
import type { Bytes } from '../../handle/bytes.js';

/** Block size. It is small, because each text wastes half a block on average. Adjacent blocks are read together. */
export const BLOCK_BYTES = 64;
const SLAB_LOG2 = 14;
const BLOCKS_PER_SLAB = 1 << SLAB_LOG2;
/** Maximum size of a store (128 GiB), because chain links are 32-bit block numbers. */
export const MAX_BYTES = 2 ** 31 * BLOCK_BYTES;

/** The block number of an empty text, and of the end of a chain. */
const NONE = -1;

interface Slab {
  bytes: Buffer;
  /** The next block in the chain, by block. */
  next: Int32Array;
}

/** A contiguous part of a text within one slab. */
interface Piece {
  bytes: Buffer;
  from: number;
  to: number;
}

/**
 * Stores each text as a chain of equal-sized blocks. Any free block fits any new text, so there is no
 * fragmentation and data never moves. Slabs are added on demand and never freed.
 */
export class BlockStore {
  readonly #slabs: Slab[] = [];
  /** The first block in the chain of free blocks. */
  #free = NONE;
  /** The first block that was never used. */
  #unused = 0;

  write(text: Bytes): number {
    const first = this.#allocate(Math.ceil(text.length / BLOCK_BYTES));
    let done = 0;
    for (const { bytes, from, to } of this.#pieces(first, text.length)) {
      bytes.write(done === 0 ? text : text.slice(done), from, to - from, 'latin1');
      done += to - from;
    }
    return first;
  }

  read(first: number, length: number): Bytes {
    const pieces = this.#pieces(first, length);
    return pieces.map(({ bytes, from, to }) => bytes.toString('latin1', from, to)).join('') as Bytes;
  }

  /** Whether the stored text starts with `start`; compared in place, because each lookup of a key does it. */
  startsWith(first: number, start: Bytes): boolean {
    const slab = this.#slabs[first >>> SLAB_LOG2];
    const from = (first % BLOCKS_PER_SLAB) * BLOCK_BYTES;
    const inBlock = Math.min(start.length, BLOCK_BYTES);
    for (let at = 0; at < inBlock; at++) if (slab?.bytes[from + at] !== start.charCodeAt(at)) return false;
    return start.length === inBlock || this.read(first, start.length) === start;
  }

  free(first: number): void {
    if (first === NONE) return;
    let last = first;
    for (let next = first; next !== NONE; next = this.#after(next)) last = next;
    this.#link(last, this.#free);
    this.#free = first;
  }

  #allocate(count: number): number {
    if (count === 0) return NONE;
    const first = this.#allocateOne();
    let last = first;
    for (let allocated = 1; allocated < count; allocated++) {
      const next = this.#allocateOne();
      this.#link(last, next);
      last = next;
    }
    this.#link(last, NONE);
    return first;
  }

  #allocateOne(): number {
    const block = this.#free;
    if (block !== NONE) {
      this.#free = this.#after(block);
      return block;
    }
    if (this.#unused === this.#slabs.length * BLOCKS_PER_SLAB) this.#slabs.push(newSlab());
    return this.#unused++;
  }

  /** Splits a text into pieces; adjacent blocks of a slab form one piece. */
  #pieces(first: number, length: number): Piece[] {
    const pieces: Piece[] = [];
    let left = length;
    for (let block = first; left > 0;) {
      const slab = this.#slabs[block >>> SLAB_LOG2];
      if (slab === undefined) throw new RangeError(`invalid block ${block}`);
      const { bytes, next } = slab;
      const start = block % BLOCKS_PER_SLAB;
      let end = start + 1;
      while (end < BLOCKS_PER_SLAB && next[end - 1] === block - start + end) end++;
      const from = start * BLOCK_BYTES;
      const size = Math.min(left, (end - start) * BLOCK_BYTES);
      pieces.push({ bytes, from, to: from + size });
      left -= size;
      block = next[end - 1] ?? NONE;
    }
    return pieces;
  }

  #after(block: number): number {
    return this.#slabs[block >>> SLAB_LOG2]?.next[block % BLOCKS_PER_SLAB] ?? NONE;
  }

  #link(block: number, next: number): void {
    const slab = this.#slabs[block >>> SLAB_LOG2];
    if (slab !== undefined) slab.next[block % BLOCKS_PER_SLAB] = next;
  }
}

/** Creates a slab. The operating system commits its memory only when it is written. */
const newSlab = (): Slab => ({
  bytes: Buffer.allocUnsafeSlow(BLOCKS_PER_SLAB * BLOCK_BYTES),
  next: new Int32Array(BLOCKS_PER_SLAB),
});
