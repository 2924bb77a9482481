// Fakes for parts of which a test needs only some members.

type Some<T> = T extends string | number | boolean | readonly unknown[] | ((...args: never[]) => unknown)
  ? T
  : { [Name in keyof T]?: T[Name] | Some<T[Name]> };

/** Returns a fake that has only the given members; a test that reaches another fails with a TypeError. */
export const partial = <T>(members: NoInfer<Some<T>>): T => members as T;
