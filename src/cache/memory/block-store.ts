// Texts kept outside the V8 heap, where collecting garbage neither visits them nor needs room beside them.
import type { Bytes } from '../../handle/bytes.js';

/** Small, as half of a block is lost with each text; neighbours are read as one. */
export const BLOCK_BYTES = 64;
const BLOCKS_A_SLAB = 16_384;
/** So many blocks can be told apart (128 GiB of them). */
export const MOST_BYTES = 2 ** 31 * BLOCK_BYTES;

/** What is no block: the empty text, and the end of a chain. */
const NONE = -1;

interface Slab {
  bytes: Buffer;
  /** By block: the one that follows it in its chain. */
  next: Int32Array;
}

/** A part of a text as it lies in a slab. */
interface Piece {
  bytes: Buffer;
  from: number;
  to: number;
}

/**
 * A text is a chain of blocks of equal size, so whatever leaves makes room for whatever comes: nothing has to be
 * moved or joined, and texts of another length find no room lost. Slabs are added as they are needed and stay.
 */
export class Slabs {
  readonly #slabs: Slab[] = [];
  /** The chain of blocks that were given back. */
  #free = NONE;
  /** The first block that was never used. */
  #fresh = 0;

  /** Says where the text is kept. */
  keep(text: Bytes): number {
    const first = this.#take(Math.ceil(text.length / BLOCK_BYTES));
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

  /** The text is not read any more. */
  drop(first: number): void {
    if (first === NONE) return;
    let last = first;
    for (let next = first; next !== NONE; next = this.#after(next)) last = next;
    this.#link(last, this.#free);
    this.#free = first;
  }

  #take(count: number): number {
    if (count === 0) return NONE;
    const first = this.#takeOne();
    let last = first;
    for (let taken = 1; taken < count; taken++) {
      const next = this.#takeOne();
      this.#link(last, next);
      last = next;
    }
    this.#link(last, NONE);
    return first;
  }

  #takeOne(): number {
    const block = this.#free;
    if (block !== NONE) {
      this.#free = this.#after(block);
      return block;
    }
    if (this.#fresh === this.#slabs.length * BLOCKS_A_SLAB) this.#slabs.push(newSlab());
    return this.#fresh++;
  }

  /** Neighbours of one slab are one piece. */
  #pieces(first: number, length: number): Piece[] {
    const pieces: Piece[] = [];
    let left = length;
    for (let block = first; left > 0;) {
      const { bytes, next } = this.#slabOf(block);
      const start = block % BLOCKS_A_SLAB;
      let end = start + 1;
      while (end < BLOCKS_A_SLAB && next[end - 1] === block - start + end) end++;
      const from = start * BLOCK_BYTES;
      const size = Math.min(left, (end - start) * BLOCK_BYTES);
      pieces.push({ bytes, from, to: from + size });
      left -= size;
      block = next[end - 1] ?? NONE;
    }
    return pieces;
  }

  #after(block: number): number {
    return this.#slabOf(block).next[block % BLOCKS_A_SLAB] ?? NONE;
  }

  #link(block: number, next: number): void {
    this.#slabOf(block).next[block % BLOCKS_A_SLAB] = next;
  }

  #slabOf(block: number): Slab {
    const slab = this.#slabs[Math.floor(block / BLOCKS_A_SLAB)];
    if (slab === undefined) throw new RangeError(`there is no block ${block}`);
    return slab;
  }
}

/** The system gives memory to a slab as it is written. */
const newSlab = (): Slab => ({
  bytes: Buffer.allocUnsafeSlow(BLOCKS_A_SLAB * BLOCK_BYTES),
  next: new Int32Array(BLOCKS_A_SLAB),
});
