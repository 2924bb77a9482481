// Proves that messages arrive: says something by way of every master and waits until it is heard.
import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';

interface Waiting {
  left: number;
  heard: () => void;
}

/**
 * A connection that is open, and even one that answers, proves nothing about messages: a node of a
 * cluster may be cut off from the one that is listened to.
 */
export class RedisBeat {
  /** Nobody else listens to it. */
  readonly channel: string;
  readonly #waiting = new Map<string, Waiting>();
  #count = 0;

  constructor(keyPrefix: string) {
    this.channel = `${keyPrefix}beat:${randomUUID()}`;
  }

  hear(text: string): void {
    const waiting = this.#waiting.get(text);
    if (waiting === undefined) return;
    waiting.left--;
    if (waiting.left === 0) waiting.heard();
  }

  /** Settles when what was said by way of each master was heard; to be given a time limit. */
  async prove(masters: readonly Redis[], signal: AbortSignal): Promise<void> {
    const text = String(++this.#count);
    const heard = new Promise<void>((resolve) => {
      this.#waiting.set(text, { left: masters.length, heard: resolve });
    });
    signal.addEventListener('abort', () => this.#waiting.delete(text), { once: true });
    await Promise.all(masters.map((master) => master.publish(this.channel, text)));
    await heard;
    this.#waiting.delete(text);
  }
}
