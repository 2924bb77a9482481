// The upstream as all workers of a machine share it: one of them asks for each key.
import type { Outcome } from '../handle/outcome.js';

export interface SharedUpstreamDeps {
  upstream: {
    resolve: (question: { handle: string; authoritative: boolean }) => Promise<Outcome>;
    letGo: (key: string) => void;
    letGoAll: (prefix: string) => void;
  };
  keyOf: (handle: string) => string;
  /** Asks the worker that answers for the key; undefined when that is this one, or it cannot say. */
  askPeer: (key: string, handle: string) => Promise<Outcome | undefined>;
  /** False while writes may be missed: the age of an answer counts then, and who joins a load does not know it. */
  mayJoin: () => boolean;
}

export class SharedUpstream {
  readonly #deps: SharedUpstreamDeps;
  readonly #loads = new Map<string, Promise<Outcome>>();

  constructor(deps: SharedUpstreamDeps) {
    this.#deps = deps;
  }

  /** An authoritative question is never shared: another may have begun before a change. */
  async resolve(question: { handle: string; authoritative: boolean }): Promise<Outcome> {
    const { handle, authoritative } = question;
    if (authoritative) return this.#deps.upstream.resolve(question);
    const key = this.#deps.keyOf(handle);
    return (await this.#deps.askPeer(key, handle)) ?? this.load(key, handle);
  }

  /** Asks the upstream once for all who wait, here and in other workers. */
  load(key: string, handle: string): Promise<Outcome> {
    const running = this.#deps.mayJoin() ? this.#loads.get(key) : undefined;
    if (running) return running;
    const load = this.#deps.upstream.resolve({ handle, authoritative: false });
    this.#loads.set(key, load);
    const land = (): void => {
      if (this.#loads.get(key) === load) this.#loads.delete(key);
    };
    load.then(land, land);
    return load;
  }

  /** A write came in between: who asks from now on must not be given what was asked before. */
  letGo(key: string): void {
    this.#loads.delete(key);
    this.#deps.upstream.letGo(key);
  }

  letGoAll(prefix: string): void {
    for (const key of this.#loads.keys()) if (key.startsWith(prefix)) this.#loads.delete(key);
    this.#deps.upstream.letGoAll(prefix);
  }
}
