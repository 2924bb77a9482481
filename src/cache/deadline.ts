// Timeout for a promise.
import { type Clock, systemClock } from './clock.js';

/** @throws what `late` makes, when the promise has not settled within `timeoutMs` */
export async function untilDeadline<T>(
  promise: Promise<T>,
  timeoutMs: number,
  late: () => Error,
  clock: Pick<Clock, 'after'> = systemClock,
): Promise<T> {
  let cancel = (): void => undefined;
  const expired = new Promise<never>((_resolve, reject) => {
    cancel = clock.after(timeoutMs, () => {
      reject(late());
    });
  });
  return Promise.race([promise, expired]).finally(cancel);
}
