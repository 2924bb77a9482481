// Generates ranks of a given distribution, reproducibly.
import type { Random } from '../support/random.js';

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
