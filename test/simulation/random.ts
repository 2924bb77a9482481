// The only source of randomness in a simulation: xoshiro128** with a seed. Each part of the world has a
// separate stream, so an additional draw in one part changes no other part.

export class Random {
  readonly #seed: number;
  #a: number;
  #b: number;
  #c: number;
  #d: number;

  constructor(seed: number) {
    this.#seed = seed >>> 0;
    const mix = splitmix(this.#seed);
    [this.#a, this.#b, this.#c, this.#d] = [mix(), mix(), mix(), mix()];
  }

  /** Returns the stream for the named part of the world. */
  stream(name: string): Random {
    let seed = this.#seed ^ 0x811c9dc5;
    for (let at = 0; at < name.length; at++) seed = Math.imul(seed ^ name.charCodeAt(at), 0x01000193);
    return new Random(splitmix(seed)());
  }

  uint32(): number {
    const times5 = Math.imul(this.#b, 5);
    const result = Math.imul((times5 << 7) | (times5 >>> 25), 9) >>> 0;
    const shifted = this.#b << 9;
    this.#c ^= this.#a;
    this.#d ^= this.#b;
    this.#b ^= this.#c;
    this.#a ^= this.#d;
    this.#c ^= shifted;
    this.#d = (this.#d << 11) | (this.#d >>> 21);
    return result;
  }

  /** Returns a number in [0, 1). */
  fraction(): number {
    return this.uint32() / 2 ** 32;
  }

  /** Returns a number in [min, max). */
  between(min: number, max: number): number {
    return min + (max - min) * this.fraction();
  }

  /** Returns an integer in [min, max]. */
  integer(min: number, max: number): number {
    return Math.floor(this.between(min, max + 1));
  }

  chance(probability: number): boolean {
    return this.fraction() < probability;
  }

  /** Returns a random item. @throws Error if there are no items */
  pick<T>(items: readonly T[]): T {
    const item = items[this.integer(0, items.length - 1)];
    if (item === undefined) throw new Error('nothing to pick from');
    return item;
  }

  /** Returns a string of `digits` random hex digits. */
  hex(digits: number): string {
    let text = '';
    while (text.length < digits) text += this.uint32().toString(16).padStart(8, '0');
    return text.slice(0, digits);
  }
}

function splitmix(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x9e3779b9) | 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return mixed ^ (mixed >>> 15);
  };
}
