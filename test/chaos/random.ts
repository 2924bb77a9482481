// Generates random numbers that are reproducible by seed.
import { randomFrom } from '../support/random.js';

export interface Random {
  /** Returns a number in [0, 1). */
  next: () => number;
  between: (least: number, most: number) => number;
  pick: <T>(from: readonly T[]) => T;
}

export function createRandom(seed: number): Random {
  const next = randomFrom(seed);
  return {
    next,
    between: (least, most) => least + next() * (most - least),
    pick: (from) => from[Math.floor(next() * from.length)]!,
  };
}
