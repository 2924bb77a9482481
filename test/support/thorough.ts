// `npm test` runs part of the longest loops, and the check (`npm run test:all`) all of them.

/** Whether `THOROUGH` is set, as `npm run test:all` does. */
export const isThorough = process.env['THOROUGH'] !== undefined;

/** Chooses between the whole and a part of it that shows the same in a fraction of the time. */
export const thorough = <T>(whole: T, part: T): T => (isThorough ? whole : part);

/** Keeps every n-th item of a list in `npm test`, always with the first. */
export const oneIn = <T>(n: number, list: readonly T[]): T[] =>
  list.filter((_, at) => isThorough || at % n === 0);
