// The upstream client shared by all workers of a machine: one worker loads each key.
import type { Outcome } from '../handle/outcome.js';
import type { HandleRead, LoadRead, UpstreamClient } from '../upstream/client.js';
import { type Load, SingleFlight } from './single-flight.js';

interface SharedUpstreamDeps {
  upstream: Omit<UpstreamClient, 'usage'>;
  keyOf: (handle: string) => string;
  /** Loads through the worker that owns the key, or undefined when this worker must load by itself. Unset without others. */
  loadAtOwner?: ((key: string, read: LoadRead) => Promise<Outcome | undefined> | undefined) | undefined;
  /** False while invalidations may be missed: then the start of a load decides its freshness, so no load is joined. */
  mayJoin: () => boolean;
}

export class SharedUpstream {
  readonly #deps: SharedUpstreamDeps;
  readonly #flight = new SingleFlight<Load & { answer: Promise<Outcome> }>();

  constructor(deps: SharedUpstreamDeps) {
    this.#deps = deps;
  }

  /** An authoritative read is never shared: an earlier load may be older than a change. The others follow referrals. */
  resolve(read: HandleRead): Promise<Outcome> {
    const { handle, authoritative, caller, isUnreferred } = read;
    const { upstream, keyOf, loadAtOwner } = this.#deps;
    // Without other workers the resolver's callers share its own load.
    if (authoritative || isUnreferred || loadAtOwner === undefined) return upstream.resolve(read);
    const key = keyOf(handle);
    const load: LoadRead = { handle, caller };
    const atOwner = loadAtOwner(key, load);
    if (atOwner === undefined) return this.load(key, load);
    return atOwner.then((outcome) => outcome ?? this.load(key, load));
  }

  /** Loads a key once for all callers, here and in other workers. */
  load(key: string, read: LoadRead): Promise<Outcome> {
    const start = () => {
      return { startedAt: 0, answer: this.#deps.upstream.resolve({ ...read, authoritative: false }) };
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
