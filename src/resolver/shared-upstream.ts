// The upstream as all workers of a machine share it: one worker loads each key.
import type { Outcome } from '../handle/outcome.js';
import type { HandleRead, UpstreamClient } from '../upstream/client.js';
import { type Load, SingleFlight } from './single-flight.js';

export interface SharedUpstreamDeps {
  upstream: Omit<UpstreamClient, 'use'>;
  keyOf: (handle: string) => string;
  /** Loads through the worker that owns the key; undefined when that is this one, or it cannot answer. */
  loadAtOwner: (key: string, handle: string) => Promise<Outcome | undefined>;
  /** False while writes may be missed: then the age of an answer counts, and a caller that joins does not know it. */
  mayJoin: () => boolean;
}

export class SharedUpstream {
  readonly #deps: SharedUpstreamDeps;
  readonly #flight = new SingleFlight<Load & { answer: Promise<Outcome> }>();

  constructor(deps: SharedUpstreamDeps) {
    this.#deps = deps;
  }

  /** An authoritative read is never shared: another one may have begun before a change. */
  async resolve(read: HandleRead): Promise<Outcome> {
    const { handle, authoritative } = read;
    if (authoritative) return this.#deps.upstream.resolve(read);
    const key = this.#deps.keyOf(handle);
    return (await this.#deps.loadAtOwner(key, handle)) ?? this.load(key, handle);
  }

  /** Loads a key once for all callers, here and in other workers. */
  load(key: string, handle: string): Promise<Outcome> {
    const start = () => {
      return { startedAt: 0, answer: this.#deps.upstream.resolve({ handle, authoritative: false }) };
    };
    const since = this.#deps.mayJoin() ? 0 : Infinity;
    return this.#flight.join(key, { start, since }).load.answer;
  }

  /** A write came in between: later callers must not get a load that began before it. */
  detachLoads(key: string): void {
    this.#flight.detach(key);
    this.#deps.upstream.detachLoads(key);
  }

  detachLoadsUnder(prefix: string): void {
    this.#flight.detachUnder(prefix);
    this.#deps.upstream.detachLoadsUnder(prefix);
  }
}
