// Requests to another process that wait for their reply.
import { type Clock, systemClock } from '../../cache/clock.js';

export class PendingRequests<Reply> {
  readonly #waiting = new Map<number, (reply: Reply | undefined) => void>();
  readonly #clock: Pick<Clock, 'after'>;
  #lastId = 0;

  constructor(clock: Pick<Clock, 'after'> = systemClock) {
    this.#clock = clock;
  }

  /** @returns the reply, or undefined after the timeout */
  request(timeoutMs: number, send: (id: number) => void): Promise<Reply | undefined> {
    const id = ++this.#lastId;
    return new Promise((resolve) => {
      const cancel = this.#clock.after(timeoutMs, () => {
        this.settle(id, undefined);
      });
      this.#waiting.set(id, (reply) => {
        cancel();
        resolve(reply);
      });
      send(id);
    });
  }

  settle(id: number, reply: Reply | undefined): void {
    const resolve = this.#waiting.get(id);
    this.#waiting.delete(id);
    resolve?.(reply);
  }
}
