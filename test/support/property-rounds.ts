// How many random inputs a property tries, if it needs another number than 100, the default of fast-check.
import { isWhole, thorough } from './thorough.js';

/** Maximum of `npm test` and of the check, which try a fifth of the inputs of `npm run test:all`. */
const MOST = thorough(1000, 100);
const SHARE = 1 / 5;

/** Returns how many of the inputs of `npm run test:all` this run tries. */
export const rounds = (all: number): number => (isWhole ? all : Math.min(MOST, Math.ceil(SHARE * all)));
