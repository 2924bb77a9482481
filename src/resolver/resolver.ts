// The use case in words: answer a handle from the cache or the upstream, and forget a handle.
import { type Clock, systemClock } from '../cache/clock.js';
import type { Entry } from '../cache/entry.js';
import { isDueForRefresh } from '../cache/policy.js';
import type { Fence } from '../cache/store.js';
import { foldHandle, recordKey } from '../handle/handle.js';
import { Flight, type Load } from './single-flight.js';
import { Loader, type LoaderDeps, type Task } from './loader.js';
import type { FromEntry, Resolution, StaleReason } from './resolution.js';

export interface ResolverDeps<Ticket> extends LoaderDeps<Ticket> {
  /** The memory tier, asked first and without waiting. */
  memory: { peek: (key: string) => Entry | undefined; hits: (key: string) => number };
  /** How often an entry must have been asked for to be refreshed ahead; 0 = never. */
  refreshAheadMinHits: number;
  /** How long a reader waits for the upstream when a stale entry could be answered (ms). */
  staleAfterMs: number;
  caseSensitive: boolean;
  clock?: Pick<Clock, 'after'>;
}

/** One handle, or all that begin with the prefix; an empty one is every handle. */
export type PurgeTarget = { handle: string } | { prefix: string };

export class Resolver<Ticket> {
  readonly #deps: ResolverDeps<Ticket>;
  readonly #loader: Loader<Ticket>;
  readonly #flight = new Flight<Resolution, Entry | undefined>();

  constructor(deps: ResolverDeps<Ticket>) {
    this.#deps = deps;
    this.#loader = new Loader(deps);
  }

  /**
   * Answers a handle. `authoritative` asks the upstream always, and keeps what it says.
   *
   * @throws ServiceError when the upstream fails and nothing may stand in
   */
  async resolve(handle: string, { authoritative }: { authoritative: boolean }): Promise<Resolution> {
    const key = this.keyOf(handle);
    const entry = authoritative ? undefined : this.#deps.memory.peek(key);
    if (entry && this.#loader.use(entry) === 'fresh') {
      this.#refreshAhead(entry, { key, handle, authoritative, newerThan: entry.cachedAt });
      return { kind: 'entry', entry, from: 'memory', collapsed: false };
    }
    if (authoritative) return this.#askAuthority({ key, handle, authoritative, newerThan: 0 });
    const { load, collapsed } = this.#join({ key, handle, authoritative, newerThan: 0 });
    const resolution = await this.#answerInTime(key, entry, load);
    return collapsed && resolution.kind === 'entry' ? { ...resolution, collapsed } : resolution;
  }

  /** Forgets a handle in every tier; what is on its way reaches those who asked before, and is not kept. */
  async forget(handle: string): Promise<void> {
    const key = this.keyOf(handle);
    this.letGo(key);
    await this.#deps.store.forget(key);
  }

  /** As the operator wishes: forgets what is kept, or lets it stand in only; what is on its way is not kept. */
  async purge(target: PurgeTarget, { isSoft }: { isSoft: boolean }): Promise<void> {
    if ('handle' in target) {
      const key = this.keyOf(target.handle);
      this.letGo(key);
      await (isSoft ? this.#deps.store.soften(key) : this.#deps.store.forget(key));
      return;
    }
    for (const prefix of keyPrefixes(target.prefix, this.#deps.caseSensitive)) {
      this.letGoAll(prefix);
      await this.#deps.store.ban({ prefix, isSoft });
    }
  }

  /** Announces a write of the handle: no load that began before its end is stored if it changed the record. */
  async fence(handle: string): Promise<Fence> {
    const key = this.keyOf(handle);
    const fence = await this.#deps.store.fence(key);
    const invalidate = async (outcome: 'changed' | 'unknown'): Promise<void> => {
      this.letGo(key);
      await fence[outcome]();
    };
    return {
      changed: () => invalidate('changed'),
      unchanged: () => fence.unchanged(),
      unknown: () => invalidate('unknown'),
    };
  }

  /** Lets go of loads on their way, after another instance said that the key was forgotten. */
  letGo(key: string): void {
    this.#flight.forget(key);
    this.#deps.upstream.letGo?.(key);
  }

  /** The same for all keys that begin so. */
  letGoAll(prefix: string): void {
    this.#flight.forgetWhere((key) => key.startsWith(prefix));
    this.#deps.upstream.letGoAll?.(prefix);
  }

  /** The key a handle is kept under. */
  keyOf(handle: string): string {
    return recordKey(handle, this.#deps.caseSensitive);
  }

  /** Joins no load, as any may have begun before a change; nor does a later caller join one from before the answer. */
  async #askAuthority(task: Task): Promise<Resolution> {
    const resolution = await this.#loader.start(task).answer;
    this.letGo(task.key);
    return resolution;
  }

  #join(task: Task): { load: Load<Resolution, Entry | undefined>; collapsed: boolean } {
    const start = (): Load<Resolution, Entry | undefined> => this.#loader.start(task);
    return this.#flight.join(task.key, { start, since: this.#deps.trustedSince() });
  }

  /** Design decision 6, RFC 8767 section 5: a stale entry answers when the load fails or is late. */
  async #answerInTime(
    key: string,
    entry: Entry | undefined,
    load: Load<Resolution, Entry | undefined>,
  ): Promise<Resolution> {
    const standIn = this.#loader.use(entry) === 'stale' ? entry : await load.standIn;
    // It may be trusted by now though it was not when the load began: then it stands in all the better.
    if (standIn === undefined || this.#loader.use(standIn) === 'none')
      return load.answer.catch((failure: unknown) => this.#foundMeanwhile(key, failure));
    const stale = (reason: StaleReason): FromEntry => {
      return { kind: 'entry', entry: standIn, from: 'memory', collapsed: false, stale: reason };
    };
    const waitMs = load.startedAt + this.#deps.staleAfterMs - this.#deps.now();
    let cancel = (): void => undefined;
    const late = new Promise<Resolution>((resolve) => {
      cancel = (this.#deps.clock ?? systemClock).after(Math.max(0, waitMs), () => {
        resolve(stale('late'));
      });
    });
    const answered = load.answer.catch(() => stale('error'));
    return Promise.race([answered, late]).finally(cancel);
  }

  /** By another load: in a Redis that had not been found yet, or at the upstream before it failed. */
  #foundMeanwhile(key: string, failure: unknown): FromEntry {
    const entry = this.#deps.memory.peek(key);
    const use = this.#loader.use(entry);
    if (entry === undefined || use === 'none') throw failure;
    const stale = use === 'stale' ? { stale: 'error' as const } : {};
    return { kind: 'entry', entry, from: 'memory', collapsed: false, ...stale };
  }

  /** Design decision 7: nobody waits for it, and nobody gets stale data meanwhile. */
  #refreshAhead(entry: Entry, task: Task): void {
    const { memory, now, refreshAheadMinHits: minHits, resting } = this.#deps;
    const isDue = isDueForRefresh(entry, { now: now(), hits: memory.hits(task.key), minHits });
    if (isDue && !resting.isResting(task.key)) this.#join(task);
  }
}

/** A prefix alone is kept under `0.NA/`, so a text without a slash may be the beginning of such a name. */
function keyPrefixes(text: string, caseSensitive: boolean): string[] {
  const folded = foldHandle(text, caseSensitive);
  return text === '' || text.includes('/') ? [folded] : [folded, `0.NA/${folded}`];
}
