// A Redis, or a cluster of several masters, as RedisBeat sees it: what is said waits until it is delivered.
import type { Redis } from 'ioredis';
import { RedisBeat } from '../../src/cache/redis-beat.js';
import { PROOF_LIFE_MS } from '../../src/cache/trust.js';

interface Message {
  channel: string;
  text: string;
}

export interface Instance {
  beat: RedisBeat;
  /** Gives a sign of life by way of every master. */
  prove: () => void;
  /** As an instance that writes: tells the others, and waits for them. The number of what it told. */
  tell: () => { number: number; heard: Promise<void> };
  /** Hears what a master has had for it for longest; false: there is nothing. */
  hear: (master?: number) => boolean;
  hearAll: () => void;
  /** The newest it was told by way of each master. */
  obeyed: number[];
  trustsItsMemory: () => boolean;
}

export interface BeatBus {
  clock: { ms: number };
  join: (name: string) => Instance;
}

const TOLD = 'told';

export function createBeatBus({ masters: masterCount = 1 } = {}): BeatBus {
  const clock = { ms: 0 };
  const listeners: Message[][][] = [];
  let told = 0;
  const mastersOf = Array.from({ length: masterCount }, (_, at) => at);
  const publish = (master: number, channel: string, text: string): void => {
    for (const queues of listeners) queues[master]?.push({ channel, text });
  };
  const masters = mastersOf.map(
    (master) =>
      ({
        publish: (channel: string, text: string) => {
          publish(master, channel, text);
          return Promise.resolve(1);
        },
      }) as unknown as Redis,
  );

  function join(instance: string): Instance {
    const queues: Message[][] = mastersOf.map(() => []);
    listeners.push(queues);
    const obeyed = mastersOf.map(() => 0);
    let provedAt = -Infinity;
    const beat = new RedisBeat({
      namespace: { channelPrefix: 'test:' },
      instance,
      answer: (channel, text) => {
        publish(0, channel, text);
      },
      steadyNow: () => clock.ms,
    });
    const hear = (master = 0): boolean => {
      const message = queues[master]?.shift();
      if (message?.channel === TOLD) obeyed[master] = Number(message.text);
      else if (message) beat.hear(message.channel, message.text);
      return message !== undefined;
    };
    return {
      beat,
      prove() {
        const at = clock.ms;
        void beat.prove(masters, new AbortController().signal).then(() => {
          provedAt = Math.max(provedAt, at);
        });
      },
      tell() {
        const number = ++told;
        for (const master of mastersOf) publish(master, TOLD, String(number));
        return { number, heard: beat.callRoll(masters) };
      },
      hear,
      hearAll() {
        for (const master of mastersOf) while (hear(master));
      },
      obeyed,
      trustsItsMemory: () => clock.ms - provedAt < PROOF_LIFE_MS,
    };
  }
  return { clock, join };
}
