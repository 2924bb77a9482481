// One load: look in the shared tier, ask the upstream when that does not help, keep what it says.
import { type Entry, hasSameContent } from '../cache/entry.js';
import {
  type LifetimeBounds,
  type Use,
  isNewerThanMirror,
  isWorthKeeping,
  judge,
  makeEntry,
} from '../cache/policy.js';
import type { Resting } from '../cache/failure-cache.js';
import type { Lookup, Store } from '../cache/store.js';
import { ServiceError } from '../errors.js';
import type { Outcome } from '../handle/outcome.js';
import type { Load } from './single-flight.js';
import type { Resolution } from './resolution.js';

export interface LoaderDeps<Ticket> {
  store: Store<Ticket>;
  upstream: {
    resolve: (question: { handle: string; authoritative: boolean }) => Promise<Outcome>;
    letGo?: (key: string) => void;
    letGoAll?: (prefix: string) => void;
  };
  resting: Resting;
  lifetimes: LifetimeBounds;
  now: () => number;
  /** Entries from before this moment (ms) may have missed an invalidation. */
  trustedSince: () => number;
}

export interface Task {
  key: string;
  handle: string;
  authoritative: boolean;
  /** Refresh ahead: what is kept is fresh, but something newer than this is wanted (ms). */
  newerThan: number;
}

export class Loader<Ticket> {
  readonly #deps: LoaderDeps<Ticket>;

  constructor(deps: LoaderDeps<Ticket>) {
    this.#deps = deps;
  }

  start(task: Task): Load<Resolution, Entry | undefined> {
    const looked = Promise.resolve(this.#deps.store.get(task.key));
    const answer = looked.then(
      (kept) => this.#answerFromKept(task, kept.entry) ?? this.#askUpstream(task, kept),
    );
    // Whoever was served a stale entry does not wait for it: its failure is nobody's then.
    answer.catch(() => undefined);
    return { startedAt: this.#deps.now(), standIn: looked.then(({ entry }) => entry), answer };
  }

  /** What an entry is good for now. */
  use(entry: Entry | undefined): Use {
    return judge(entry, this.#deps.now(), this.#deps.trustedSince());
  }

  #answerFromKept(task: Task, entry: Entry | undefined): Resolution | undefined {
    if (task.authoritative || entry === undefined) return undefined;
    const use = this.use(entry);
    if (use === 'fresh' && entry.cachedAt > task.newerThan) {
      return { kind: 'entry', entry, from: 'redis', collapsed: false };
    }
    if (use === 'stale' && this.#deps.resting.isResting(task.key)) {
      return { kind: 'entry', entry, from: 'memory', collapsed: false, stale: 'resting' };
    }
    return undefined;
  }

  async #askUpstream(task: Task, kept: Lookup<Ticket>): Promise<Resolution> {
    const askedAt = this.#deps.now();
    const outcome = await this.#outcomeOf(task);
    if (outcome.isFromMirror && kept.entry && this.#isBetter(kept.entry, askedAt)) {
      this.#deps.resting.failed(task.key);
      return { kind: 'entry', entry: kept.entry, from: 'memory', collapsed: false, stale: 'error' };
    }
    if (outcome.kind === 'refused') return { kind: 'refused', refused: outcome };
    const entry = makeEntry(outcome, askedAt, this.#deps.lifetimes);
    const isKept = this.#isKept(task, entry);
    const stored = isKept && this.#deps.store.accepts(task.key, kept.ticket);
    const storing = isKept ? this.#store(task, entry, kept.ticket) : this.#drop(task, kept);
    // The next question shall not find the older record, wherever it is answered.
    if (task.authoritative) await storing;
    else storing.catch(exceptNotConfirmed);
    return { kind: 'entry', entry, from: 'upstream', collapsed: false, stored };
  }

  /** Than what a mirror says. */
  #isBetter(entry: Entry, askedAt: number): boolean {
    return this.use(entry) === 'stale' && isNewerThanMirror(entry, askedAt, this.#deps.lifetimes);
  }

  async #outcomeOf({ key, handle, authoritative }: Task): Promise<Outcome> {
    try {
      const outcome = await this.#deps.upstream.resolve({ handle, authoritative });
      this.#deps.resting.succeeded(key);
      return outcome;
    } catch (failure) {
      this.#deps.resting.failed(key);
      throw failure;
    }
  }

  /** An authoritative "not found" evicts (HDLProxy serves the deleted record again); so does a TTL of 0. */
  #isKept({ authoritative }: Task, entry: Entry): boolean {
    return isWorthKeeping(entry, this.#deps.now()) && !(authoritative && entry.kind !== 'found');
  }

  async #store({ key, authoritative }: Task, entry: Entry, ticket: Ticket): Promise<void> {
    const { store } = this.#deps;
    if (!authoritative) await store.set(key, entry, ticket);
    else if (!(await store.replace(key, entry, ticket))) await this.#invalidate(key, entry);
  }

  /**
   * A write, or another authoritative answer, came in between: nobody can tell which of the two is newer.
   * An older record must not be answered after this one was, so an entry that differs goes. So do the copies of others.
   */
  async #invalidate(key: string, entry: Entry): Promise<void> {
    const { store } = this.#deps;
    const { entry: kept } = await store.get(key);
    if (kept === undefined) await store.soften(key);
    else if (hasSameContent(kept, entry)) await store.forgetCopies(key);
    else await store.forget(key);
  }

  async #drop({ key, authoritative }: Task, { entry: kept }: Lookup<Ticket>): Promise<void> {
    if (authoritative || kept !== undefined) await this.#deps.store.forget(key);
  }
}

/** A reader has asked for no change: that one is not confirmed is nothing to it. */
function exceptNotConfirmed(failure: unknown): void {
  if (!(failure instanceof ServiceError)) throw failure;
}
