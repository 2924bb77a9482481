// A cache in front of all instances, as Varnish with the VCL of config/examples: it stores fast responses, and bans by key.
import { partial } from '../support/partial.js';
import { untilDeadline } from '../../src/clock.js';
import type { Hooks } from '../../src/hooks.js';
import type { Host } from '../../src/host.js';
import { start } from '../../src/plugins/fronts/fronts.js';
import type { FrontsConfig } from '../../src/plugins/fronts/plugin.js';
import type { Process } from './process.js';
import type { Random } from './random.js';
import type { Target } from './requests.js';
import { Violation } from './violation.js';
import type { World } from './world.js';

export const FRONT_SETTINGS = {
  urls: ['http://front'],
  unconfirmedWrites: 'reject' as 'reject' | 'accept',
  ...{ settleMs: 150, repeatMs: 5000, timeoutMs: 2000, retryMs: 1000 },
};
/** Longest time of a response that is stored, as in varnish.vcl. */
const MAX_STORED_MS = 100;
const MAX_DELAY_MS = 40;
const FAIL_EVERY_MS = 10_000;
const MAX_FAILED_MS = 4000;

/** A response of an instance; without keys, or stale, it is not stored in front. */
export interface FrontResponse {
  version: number;
  keys: string | undefined;
  ttlMs: number;
}

export class FrontCache {
  hits = 0;
  readonly #world: World;
  readonly #random: Random;
  readonly #stored = new Map<string, { version: number; keys: string; endsAt: number }>();
  #frozenUntil = 0;
  /** Until then it serves clients, and no ban reaches it. */
  #cutUntil = 0;
  #isOver = false;

  constructor(world: World) {
    this.#world = world;
    this.#random = world.simulation.random.stream('front');
    this.#failAgain();
  }

  /** Starts the plugin of an instance. */
  open(process: Process, hooks: Hooks): void {
    const nothing = (): void => undefined;
    const host = partial<Host>({
      clock: process.clock,
      log: partial({ info: nothing, warn: nothing }),
      metrics: partial({ counterOf: () => nothing }),
    });
    const send = (_url: string, { headers }: RequestInit, timeoutMs: number): Promise<Response> => {
      const keys = (headers as Record<string, string>)['Surrogate-Key']!;
      return untilDeadline(this.#ban(process, keys), timeoutMs, () => new Error('late'), process.clock);
    };
    const { published, recordHeaders } = start(
      host,
      partial<FrontsConfig>({ fronts: FRONT_SETTINGS }),
      () => ({ send, close: () => Promise.resolve() }),
    );
    hooks.published.push(published!);
    hooks.recordHeaders.push(recordHeaders!);
  }

  /** Reads a record through this cache. */
  read({ server, handle }: Target): void {
    const { now, strict } = this.#world;
    if (now < this.#frozenUntil) return;
    const oldest = strict.oldest('', handle);
    const stored = this.#stored.get(handle);
    if (stored !== undefined && stored.endsAt > now) {
      this.hits++;
      if (stored.version >= oldest) return;
      const detail = `version ${stored.version} of ${handle}, asked when ${oldest} was acknowledged`;
      this.#world.violation ??= new Violation('no older answer of a cache in front', detail);
      return;
    }
    this.#cross('is asked by the front', () => {
      server.process.post(0, `is asked for ${handle} by the front`, () => {
        const store = ({ keys, ttlMs, version }: FrontResponse): void => {
          const isStored = keys !== undefined && this.#world.now - now < MAX_STORED_MS;
          if (isStored) this.#stored.set(handle, { version, keys, endsAt: this.#world.now + ttlMs });
        };
        const answer = (response: FrontResponse): void => {
          this.#cross('the front is answered', () => {
            store(response);
          });
        };
        server.respond(handle).then(answer, () => undefined);
      });
    });
  }

  /** Is not frozen or cut off again. */
  stop(): void {
    this.#isOver = true;
  }

  #ban(process: Process, keys: string): Promise<Response> {
    const matches = new RegExp(keys);
    return new Promise((resolve) => {
      this.#cross('the front bans', () => {
        if (this.#world.now < this.#cutUntil) return;
        for (const [handle, stored] of this.#stored)
          if (matches.test(stored.keys)) this.#stored.delete(handle);
        this.#cross('the front has banned', () => {
          process.post(0, 'is told of a ban', () => {
            resolve(new Response(null, { headers: { 'Surrogate-Banned': keys } }));
          });
        });
      });
    });
  }

  /** Runs after a delay, and once the front is not frozen. */
  #cross(label: string, arrived: () => void): void {
    const arrive = (): void => {
      const leftMs = this.#frozenUntil - this.#world.now;
      if (leftMs > 0) this.#world.after(leftMs, label, arrive);
      else arrived();
    };
    this.#world.after(this.#random.between(0, MAX_DELAY_MS), label, arrive);
  }

  #failAgain(): void {
    this.#world.after(this.#random.between(0, 2 * FAIL_EVERY_MS), 'the front is frozen or cut off', () => {
      if (this.#isOver) return;
      const until = this.#world.now + this.#random.between(0, MAX_FAILED_MS);
      if (this.#random.chance(0.5)) this.#frozenUntil = until;
      else this.#cutUntil = until;
      this.#failAgain();
    });
  }
}
