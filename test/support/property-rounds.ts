// How many random inputs a property tries, if it needs another number than 100, the default of fast-check.
import { thorough } from './thorough.js';

const QUICK_ROUNDS = 100;
const QUICK_SHARE = 1 / 5;

/** Returns the number in the check; `npm test` tries a fifth of it, at most 100. */
export const rounds = (inCheck: number): number =>
  thorough(inCheck, Math.min(QUICK_ROUNDS, Math.ceil(QUICK_SHARE * inCheck)));
