// Chooses the calls to audit at random.

/**
 * Creates a function that returns true with a probability. It draws the gap to the next sample, so that all
 * other calls cost one decrement.
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
