// Signs of life on Redis: they prove that messages arrive here, and that they have arrived everywhere.
import type { Redis } from 'ioredis';
import { Neighbours } from './neighbours.js';

export interface RedisBeatOptions {
  namespace: { readonly channelPrefix: string };
  /** The name of this instance: no spaces, and nobody else's. */
  instance: string;
  /** Answers another instance; an answer that is lost only makes it wait. */
  answer: (channel: string, text: string) => void;
  /** ms that only grow. */
  steadyNow?: () => number;
}

const SIGN = /^(alive|call|gone) (\S+)(?: (\d+))?$/;

/** Something that was said by way of every master. */
interface Said {
  masters: number;
  /** By way of so many it has been heard here. */
  heard: number;
  /** By way of how many each of the others has heard it; undefined: nobody is asked. */
  answers: Map<string, number> | undefined;
  /** Those that were alive when it was heard here, and until when; undefined: not heard yet. */
  awaited?: Map<string, number>;
  settle: () => void;
}

/**
 * A connection that is open, and even one that answers, proves nothing about messages: a node of a
 * cluster may be cut off from the one that is listened to. So what proves it goes by way of every master.
 *
 * What goes by way of one master arrives in the order in which it was said. So whoever answers a call has
 * obeyed all that was said before it; and whoever does not has heard no sign of its own since, which ends its
 * trust in its memory (trust.ts), and need not be waited for longer than that takes. When this instance
 * hears its own call it knows all that are to be waited for, and how long at most: they gave a sign before they
 * trusted anything, and who hears a later sign of its own has heard the call before. So an answer that is lost,
 * or a call that was missed for a new connection, keeps nobody waiting for ever.
 */
export class RedisBeat {
  readonly #options: RedisBeatOptions;
  readonly #steadyNow: () => number;
  readonly #neighbours: Neighbours;
  readonly #waiting = new Map<string, Said>();
  #count = 0;

  constructor(options: RedisBeatOptions) {
    this.#options = options;
    this.#steadyNow = options.steadyNow ?? (() => performance.now());
    this.#neighbours = new Neighbours(this.#steadyNow);
  }

  /** The first is everybody's, the second for answers to this instance. */
  get channels(): readonly [common: string, own: string] {
    return [`${this.#options.namespace.channelPrefix}beat`, this.#answersTo(this.#options.instance)];
  }

  /** False: the message is about something else. */
  hear(channel: string, text: string): boolean {
    const [common, own] = this.channels;
    if (channel === common) this.#hearSign(text);
    else if (channel === own) this.#hearAnswer(text);
    return channel === common || channel === own;
  }

  /** Settles when what was said by way of each master was heard; to be given a time limit. */
  prove(masters: readonly Redis[], signal: AbortSignal): Promise<void> {
    const proved = this.#say('alive', masters);
    const number = String(this.#count);
    signal.addEventListener('abort', () => this.#waiting.delete(number), { once: true });
    return proved;
  }

  /** Settles when every instance that trusts its memory has obeyed what was said before, or calls are ended. */
  callRoll(masters: readonly Redis[]): Promise<void> {
    return this.#say('call', masters, new Map());
  }

  /** Nothing is heard any more. */
  endCalls(): void {
    for (const { answers, settle } of this.#waiting.values()) if (answers) settle();
  }

  /** Nobody need wait for this instance any more. */
  async leave(redis: Redis): Promise<void> {
    await redis.publish(this.channels[0], `gone ${this.#options.instance}`);
  }

  async #say(kind: 'alive' | 'call', masters: readonly Redis[], answers?: Said['answers']): Promise<void> {
    const number = String(++this.#count);
    const heard = new Promise<void>((settle) => {
      this.#waiting.set(number, { masters: masters.length, heard: 0, answers, settle });
    });
    const text = `${kind} ${this.#options.instance} ${number}`;
    try {
      await Promise.all(masters.map((master) => master.publish(this.channels[0], text)));
      await heard;
    } finally {
      this.#waiting.delete(number);
    }
  }

  #hearSign(text: string): void {
    const [, kind = '', who = '', number = ''] = SIGN.exec(text) ?? [];
    if (who === '') return;
    const { instance, answer } = this.#options;
    if (who === instance) this.#hearItself(kind, number);
    else if (kind === 'gone') this.#hearLeaving(who);
    else this.#neighbours.gaveSign(who);
    if (who !== instance && kind === 'call') answer(this.#answersTo(who), `${instance} ${number}`);
  }

  #hearLeaving(who: string): void {
    this.#neighbours.left(who);
    for (const { awaited } of this.#waiting.values()) awaited?.delete(who);
  }

  #hearItself(kind: string, number: string): void {
    const said = this.#waiting.get(number);
    if (said) {
      said.heard++;
      this.#settle(said);
    }
    // Said every second, it is the clock by which calls find out who has gone or fallen silent.
    if (kind === 'alive') for (const each of this.#waiting.values()) this.#settle(each);
  }

  #hearAnswer(text: string): void {
    const [who = '', number = ''] = text.split(' ');
    if (who !== '') this.#neighbours.gaveSign(who);
    const said = this.#waiting.get(number);
    said?.answers?.set(who, (said.answers.get(who) ?? 0) + 1);
    if (said) this.#settle(said);
  }

  #settle(said: Said): void {
    const { masters, heard, answers, settle } = said;
    if (heard < masters) return;
    if (!answers) {
      settle();
      return;
    }
    const awaited = (said.awaited ??= this.#neighbours.alive());
    const now = this.#steadyNow();
    const isDone = ([who, until]: [string, number]): boolean =>
      (answers.get(who) ?? 0) >= masters || until < now;
    if ([...awaited].every(isDone)) settle();
  }

  #answersTo(instance: string): string {
    return `${this.#options.namespace.channelPrefix}answers:${instance}`;
  }
}
