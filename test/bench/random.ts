// Generates reproducible random numbers.

/** Returns a number in [0, 1). */
export type Random = () => number;

/** Creates a mulberry32 generator, which is small, fast, and reproducible on every platform. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Creates a generator of ranks from 1 to `count`, weighted by rank^-exponent. */
export function createZipf(count: number, random: Random, exponent = 0.99): () => number {
  const sums = new Float64Array(count);
  let sum = 0;
  for (let rank = 1; rank <= count; rank++) sums[rank - 1] = sum += rank ** -exponent;
  return () => {
    const wanted = random() * sum;
    let [low, high] = [0, count - 1];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((sums[middle] ?? 0) < wanted) low = middle + 1;
      else high = middle;
    }
    return low + 1;
  };
}
