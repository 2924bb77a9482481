// Continues with values that may be promises.

/** Calls `then` with a value, or after its promise resolves. Without a promise, all is synchronous. */
export const maybe = <T, R>(value: T | Promise<T>, then: (value: T) => R | Promise<R>): R | Promise<R> =>
  value instanceof Promise ? value.then(then) : then(value);

/** Returns the values of a list of which some may be promises. Without a promise, all is synchronous. */
export const maybeAll = <T>(values: readonly (T | Promise<T>)[]): readonly T[] | Promise<T[]> =>
  hasNoPromise(values) ? values : Promise.all(values.map(async (value) => value));

const hasNoPromise = <T>(values: readonly (T | Promise<T>)[]): values is readonly T[] =>
  !values.some((value) => value instanceof Promise);
