// `npm test` runs part of the longest loops, the check more of them, and `npm run test:all` all.

/** Whether `THOROUGH` is set, as by the check and `npm run test:all`. */
export const isThorough = process.env['THOROUGH'] !== undefined;

/** Whether `npm run test:all` runs, which takes as long as it needs. */
export const isWhole = process.env['THOROUGH'] === 'all';

/** Chooses between the whole and a part of it that shows the same in a fraction of the time. */
export const thorough = <T>(whole: T, part: T): T => (isThorough ? whole : part);

/** Keeps every n-th item of a list in `npm test`, always with the first. */
export const oneIn = <T>(n: number, list: readonly T[]): T[] =>
  list.filter((_, at) => isThorough || at % n === 0);
