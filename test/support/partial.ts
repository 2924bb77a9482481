// Fakes for parts of which a test needs only some members.

/** Returns a fake that has only the given members; a test that reaches another fails with a TypeError. */
export const partial = <T>(members: NoInfer<Partial<T>>): T => members as T;
