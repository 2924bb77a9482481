// Names that were made for a caller who never heard of them, kept for the same caller to ask again.
import { LRUCache } from 'lru-cache';
import type { KeyLock } from './key-lock.js';
import type { RedisCommands } from '../cache/redis/commands.js';
import { STORE_UNCLAIMED } from './scripts.js';

/** Tells all other workers a line; done when every one of them has received it. */
export type PublishToWorkers = (line: string) => Promise<void>;

/** `ask` is one word that stands for all of what was asked for. */
export interface UnclaimedNames {
  leave: (ask: string, name: string) => Promise<void>;
  /** A name that was left, and to nobody else again; undefined when there is none. */
  claim: (ask: string) => Promise<string | undefined>;
}

export interface UnclaimedDeps {
  left: LocalUnclaimedNames;
  lock: KeyLock;
  /** The other workers of this machine, when there are any. */
  tell?: PublishToWorkers;
  shared?: Pick<RedisCommands, 'run' | 'keyPrefix'>;
}

/** Programs that try again do so within minutes; one that was started again may take longer. */
const LIFE_MS = 3_600_000;
const MAX_REQUESTS = 10_000;

/** What is left in this process; all workers of a machine hold the same. */
export class LocalUnclaimedNames {
  readonly #names = new LRUCache<string, { names: string[]; until: number }>({ max: MAX_REQUESTS });

  constructor(private readonly now: () => number) {}

  of(ask: string): readonly string[] {
    const left = this.#names.get(ask);
    return left === undefined || left.until <= this.now() ? [] : left.names;
  }

  keep(ask: string, name: string): void {
    this.#names.set(ask, { names: [...this.of(ask), name], until: this.now() + LIFE_MS });
  }

  drop(ask: string, name: string): void {
    const names = this.of(ask).filter((other) => other !== name);
    if (names.length === 0) this.#names.delete(ask);
    else this.#names.set(ask, { names, until: this.now() + LIFE_MS });
  }

  /** Does here what another worker did there; false when the line is about something else. */
  receive(line: string): boolean {
    const [, kind, ask = '', name = ''] = /^(left|claimed) (\S+) ([^]*)$/.exec(line) ?? [];
    if (kind === 'left') this.keep(ask, name);
    if (kind === 'claimed') this.drop(ask, name);
    return kind !== undefined;
  }
}

/** In Redis where it is there, else in all workers of this machine. */
export function createUnclaimedNames({ left, lock, tell, shared }: UnclaimedDeps): UnclaimedNames {
  const run: RedisCommands['run'] = (name, command) =>
    shared === undefined ? Promise.resolve(undefined) : shared.run(name, command);
  const placeOf = (ask: string): string => `${shared?.keyPrefix ?? ''}unclaimed:${ask}`;

  /** Under a lock, as another worker may be about to give out the same. */
  async function claimHere(ask: string): Promise<string | undefined> {
    if (left.of(ask).length === 0) return undefined;
    return lock(`unclaimed:${ask}`, async () => {
      const [name] = left.of(ask);
      if (name === undefined) return undefined;
      left.drop(ask, name);
      await tell?.(`claimed ${ask} ${name}`);
      return name;
    });
  }

  return {
    async leave(ask, name) {
      const isShared = await run('leave', (redis) =>
        redis.eval(STORE_UNCLAIMED, 1, placeOf(ask), name, LIFE_MS),
      );
      if (isShared !== undefined) return;
      left.keep(ask, name);
      await tell?.(`left ${ask} ${name}`);
    },
    async claim(ask) {
      const name = await run('claim', (redis) => redis.lpop(placeOf(ask)));
      return name ?? claimHere(ask);
    },
  };
}
