// Queue of requests for a Handle server: selects the next request, or the one to drop when the queue is full.
import { CLASSES, type Caller, type CallerClass } from './caller.js';

export interface Waiter {
  caller: Caller;
  /** Record key, plus the login if there is one. */
  key: string | undefined;
}

export interface PlacesInUse {
  mayRun: (waiter: Waiter) => boolean;
  runningOf: (client: string | undefined) => number;
}

/** Weights for freed slots while all classes wait, so that no class starves. */
const WEIGHT: Readonly<Record<CallerClass, number>> = { preferred: 16, normal: 4, background: 1 };

interface QueuedClient<W> {
  /** A representative waiter, without a record key, for checking the client's share. */
  any: Waiter;
  /** Waiters in order of arrival. */
  waiters: W[];
  /** Last service, or `MAX_CREDIT_MS` before arrival if that is later. */
  servedAt: number;
}

interface QueuedClass<W> {
  name: CallerClass;
  clients: Map<string | undefined, QueuedClient<W>>;
  virtualTime: number;
}

/** Maximum idle time (ms) that counts for precedence, so that new clients cannot starve the others. */
const MAX_CREDIT_MS = 1000;

/**
 * Weighted fair queueing among classes (by virtual time), then among the clients of a class: the client with
 * the fewest running requests is next, ties going to the least recently served. A client with 1,000 queued
 * requests therefore gets no priority over a client that sends one at a time.
 */
export class FairQueue<W extends Waiter> {
  readonly #classes = CLASSES.map((name): QueuedClass<W> => ({ name, clients: new Map(), virtualTime: 0 }));
  /** Last service time per client, oldest first; dropped after `MAX_CREDIT_MS`. */
  readonly #servedAt = new Map<string | undefined, number>();
  size = 0;

  constructor(private readonly now: () => number) {}

  add(waiter: W): void {
    const { caller } = waiter;
    const queued = this.#classOf(caller);
    const { clients } = queued;
    if (clients.size === 0) this.#catchUp(queued);
    const known = clients.get(caller.client);
    if (known === undefined) {
      const servedAt = Math.max(this.#servedAt.get(caller.client) ?? -Infinity, this.now() - MAX_CREDIT_MS);
      clients.set(caller.client, { any: { caller, key: undefined }, waiters: [waiter], servedAt });
    } else {
      known.waiters.push(waiter);
    }
    this.size++;
  }

  remove(waiter: W): void {
    const { clients } = this.#classOf(waiter.caller);
    const { waiters = [] } = clients.get(waiter.caller.client) ?? {};
    const at = waiters.indexOf(waiter);
    if (at < 0) return;
    waiters.splice(at, 1);
    this.size--;
    if (waiters.length === 0) clients.delete(waiter.caller.client);
  }

  /** Removes and returns the next waiter; undefined if none may run. */
  takeNext(places: PlacesInUse): W | undefined {
    const waiting = this.#classes.filter(({ clients }) => clients.size > 0);
    if (waiting.length > 1) waiting.sort((one, other) => one.virtualTime - other.virtualTime);
    for (const queued of waiting) {
      const next = nextOf(queued, places);
      if (next === undefined) continue;
      queued.virtualTime += 1 / WEIGHT[queued.name];
      this.#serve(next);
      return next;
    }
    return undefined;
  }

  /**
   * Removes and returns the waiter to drop for a new one; undefined if there is none. It is the last waiter
   * of the client with the most waiters in a lower class, or in the same class if that client would still
   * have more waiters than the new waiter's client.
   */
  takeDisplaced({ caller }: Waiter): W | undefined {
    for (const { name, clients } of this.#classes.toReversed()) {
      let largest: readonly W[] = [];
      for (const { waiters } of clients.values()) if (waiters.length > largest.length) largest = waiters;
      const isSame = name === caller.class;
      const least = isSame ? (clients.get(caller.client)?.waiters.length ?? 0) + 2 : 1;
      const last = largest.length >= least ? largest.at(-1) : undefined;
      if (last !== undefined) {
        this.remove(last);
        return last;
      }
      if (isSame) return undefined;
    }
    return undefined;
  }

  #classOf(caller: Caller): QueuedClass<W> {
    return this.#classes[CLASSES.indexOf(caller.class)] as QueuedClass<W>;
  }

  /** Advances the virtual time of a class that was idle, so that it earns no credit for that time. */
  #catchUp(queued: QueuedClass<W>): void {
    const waiting = this.#classes.filter(({ clients }) => clients.size > 0);
    if (waiting.length === 0) return;
    const earliest = Math.min(...waiting.map(({ virtualTime }) => virtualTime));
    queued.virtualTime = Math.max(queued.virtualTime, earliest);
  }

  #serve(waiter: W): void {
    const { client: name } = waiter.caller;
    const now = this.now();
    const client = this.#classOf(waiter.caller).clients.get(name);
    if (client) client.servedAt = now;
    this.remove(waiter);
    this.#servedAt.delete(name);
    this.#servedAt.set(name, now);
    for (const [oldest, servedAt] of this.#servedAt) {
      if (servedAt > now - MAX_CREDIT_MS) return;
      this.#servedAt.delete(oldest);
    }
  }
}

/** Returns the first runnable waiter of the client with the fewest running requests; on ties, least recently served. */
function nextOf<W extends Waiter>(
  { clients }: QueuedClass<W>,
  { mayRun, runningOf }: PlacesInUse,
): W | undefined {
  let next: W | undefined;
  let [fewest, earliest] = [Infinity, Infinity];
  for (const { any, waiters, servedAt } of clients.values()) {
    const running = runningOf(any.caller.client);
    if (running > fewest || (running === fewest && servedAt >= earliest)) continue;
    // Checks the client's share once, because a client that uses all its slots may have hundreds of waiters.
    if (!mayRun(any)) continue;
    for (const waiter of waiters) {
      if (!mayRun(waiter)) continue;
      next = waiter;
      [fewest, earliest] = [running, servedAt];
      break;
    }
  }
  return next;
}
