// Waits for a promise, but not for ever.

/** @throws what `late` makes, when the promise has not settled after so many ms */
export async function untilDeadline<T>(promise: Promise<T>, waitMs: number, late: () => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const expired = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      // When this process was busy the answer may be here and merely not read yet: that comes first.
      setImmediate(() => {
        reject(late());
      });
    }, waitMs);
  });
  return Promise.race([promise, expired]).finally(() => {
    clearTimeout(timer);
  });
}
