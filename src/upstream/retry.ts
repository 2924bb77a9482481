// A second try for a read whose connection was cut.
import { handleWhen, retry } from 'cockatiel';
import { isConnectionFailure } from './failure.js';

const secondTry = retry(handleWhen(isConnectionFailure), { maxAttempts: 1 });

/** Runs a read, and once more on a fresh connection when the connection was at fault. */
export function retryOnFresh<T>(read: (fresh: boolean) => Promise<T>): Promise<T> {
  return secondTry.execute(({ attempt }) => read(attempt > 0));
}
