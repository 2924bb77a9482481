// Sets how many random inputs a property tries: 100 in `npm test`, and 500 in the check.
import fc from 'fast-check';
import { thorough } from './thorough.js';

const QUICK_ROUNDS = 100;
const QUICK_SHARE = 1 / 5;

fc.configureGlobal({ numRuns: thorough(500, QUICK_ROUNDS) });

/** For a property that needs another number in the check: `npm test` tries a fifth of it, at most 100. */
export const rounds = (inCheck: number): number =>
  thorough(inCheck, Math.min(QUICK_ROUNDS, Math.ceil(QUICK_SHARE * inCheck)));
