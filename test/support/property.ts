// Tests of properties: vitest's `test` with `prop`, which tries a function with random input. The package
// @fast-check/vitest needs two seconds in each process, because it wraps all chains of modifiers.
import fc from 'fast-check';
import { test as plain } from 'vitest';

export { fc };

type Arbitraries<T extends unknown[]> = { [At in keyof T]: fc.Arbitrary<T[At]> };

/** Returns a function that adds a test, which fails if the function throws or returns false for any input. */
const prop =
  <T extends [unknown, ...unknown[]]>(arbitraries: Arbitraries<T>, parameters?: fc.Parameters<T>) =>
  (title: string, run: (...values: T) => unknown): void => {
    plain(title, async () => {
      // Awaits also what a property of synchronous code returns.
      const tried = async (...values: T): Promise<boolean> => (await run(...values)) !== false;
      await fc.assert(fc.asyncProperty(...arbitraries, tried), parameters);
    });
  };

export const test = Object.assign(plain.extend({}), { prop });
