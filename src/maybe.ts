// Continues with a value that may be a promise.

/** Calls `then` with a value, or after its promise resolves. Without a promise, all is synchronous. */
export const maybe = <T, R>(value: T | Promise<T>, then: (value: T) => R | Promise<R>): R | Promise<R> =>
  value instanceof Promise ? value.then(then) : then(value);
