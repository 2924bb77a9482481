// The sweeps that all instances on one Redis know of.
import { type Message, readMessage, sweepLine } from './message.js';
import type { RedisLink } from './redis-link.js';
import { SWEEP } from './redis-scripts.js';
import { type Rule, type Sweep, Sweeps } from './sweeps.js';

export type SweepMessage = Extract<Message, { kind: 'sweep' }>;

export type SweepLink = Pick<RedisLink, 'run' | 'commands' | 'keyPrefix' | 'announcement' | 'lose'>;

/** As many as each instance keeps. */
const MOST_KEPT = 200;

/**
 * An entry in Redis carries the number of the newest sweep that its instance knew when it began to
 * load: so no instance takes it for newer than a sweep it is older than, whatever crossed on the way.
 */
export class RedisSweeps {
  readonly known = new Sweeps();
  readonly #link: SweepLink;
  readonly #onMissed: (sweep: Sweep) => void;
  /** Made while Redis did not listen. */
  #owed: Sweep[] = [];

  /** `onMissed`: another instance swept and it was not heard of, because messages were lost. */
  constructor(link: SweepLink, onMissed: (sweep: Sweep) => void) {
    this.#link = link;
    this.#onMissed = onMissed;
  }

  get #name(): string {
    return `${this.#link.keyPrefix}sweeps`;
  }

  /** Tells all instances; the number of the sweep, or 0 when Redis is away and will be told later. */
  async sweep(sweep: Sweep): Promise<number> {
    const number = await this.#link.run('sweep', () => this.#say(sweep));
    if (number !== undefined) return number;
    this.#owed.push(sweep);
    this.#link.lose();
    return 0;
  }

  /** Another instance swept; tells whether that is news. */
  enter({ key: prefix, isSoft, number }: SweepMessage): boolean {
    return this.known.add({ prefix, isSoft, number, at: 0 });
  }

  /** To be done before Redis is read again: learns what was missed, says what was not said. */
  async settle(): Promise<void> {
    await this.#agree(await this.#link.commands.zrange(this.#name, 0, -1));
    for (let sweep = this.#owed[0]; sweep !== undefined; sweep = this.#owed[0]) {
      await this.#say(sweep);
      this.#owed.shift();
    }
  }

  /** Catches up with the others, and sees to it that Redis has not lost what was told. */
  async keep(): Promise<void> {
    await this.#agree(await this.#link.commands.zrangebyscore(this.#name, this.known.latest, '+inf'));
  }

  async #agree(lines: readonly string[]): Promise<void> {
    const { latest, rules } = this.known;
    const stored = lines.map((line) => readMessage(line)).filter((message) => message?.kind === 'sweep');
    if (rules.length > 0 && !stored.some(({ number }) => number === latest)) {
      await this.#link.commands.zadd(this.#name, ...rules.flatMap((rule) => [rule.number, lineOf(rule)]));
    }
    for (const message of stored) {
      if (this.enter(message)) this.#onMissed({ prefix: message.key, isSoft: message.isSoft });
    }
  }

  async #say(sweep: Sweep): Promise<number> {
    const [channel, sender] = this.#link.announcement('');
    const parts = [...sweepLine(sweep), channel, sender, MOST_KEPT];
    const number = Number(await this.#link.commands.eval(SWEEP, 1, this.#name, this.known.latest, ...parts));
    this.known.add({ ...sweep, number, at: 0 });
    return number;
  }
}

function lineOf(rule: Rule): string {
  const [before, after] = sweepLine(rule);
  return `${before}${rule.number}${after}`;
}
