// Random sampling of calls to audit.

/**
 * Creates a function that returns true with the given probability. It draws the distance to the next sample, so
 * that a call between samples costs only a decrement.
 */
export function createSampler(probability: number, random: () => number = Math.random): () => boolean {
  const gap = (): number =>
    probability === 0 ? Infinity : 1 + Math.floor(Math.log(1 - random()) / Math.log1p(-probability));
  let left = gap();
  return () => {
    if (--left > 0) return false;
    left = gap();
    return true;
  };
}
