// Tracks what metrics cannot show: top handles, networks and agents, recent errors, and causes of server
// failures.
import { TopCounts } from './top-counts.js';

export interface RecentError {
  /** ISO 8601. */
  at: string;
  message: string;
}

/** A server's state after its last request, with the error's code, cause and remedy if it failed. */
interface ServerState {
  state: 'unknown' | 'working' | 'failing';
  code?: string;
  cause?: string;
  remedy?: string | undefined;
}

interface ClientRequest {
  network: string | undefined;
  agent: string;
  result: string;
  /** Whether the request is rejected because of its client. */
  isRejected: boolean;
}

const MAX_ERRORS = 20;
const MAX_RANKED = 20;
/** Maximum characters stored of a User-Agent header. */
const MAX_AGENT_LENGTH = 200;

const MISSES: readonly string[] = ['miss', 'authoritative', 'bypass'];

/** Recent activity; its top lists cover the last five to ten minutes. */
export class Recent {
  readonly #now: () => number;
  readonly #handles: TopList;
  readonly #misses: TopList;
  readonly #networks: TopList;
  readonly #agents: TopList;
  readonly #errors: RecentError[] = [];
  readonly #servers = new Map<string, ServerState>();

  constructor(now: () => number) {
    this.#now = now;
    [this.#handles, this.#misses] = [new TopList(now), new TopList(now)];
    [this.#networks, this.#agents] = [new TopList(now), new TopList(now)];
  }

  countHandle(handle: string, result: string, times = 1): void {
    this.#handles.add(handle, times);
    if (result === 'miss') this.#misses.add(handle, times);
  }

  /** Counts a request that reaches the Handle server, or would if it were not rejected. */
  countClient({ network, agent, result, isRejected }: ClientRequest): void {
    if (!MISSES.includes(result) && !isRejected) return;
    if (network !== undefined) this.#networks.add(network);
    this.#agents.add(copyStart(agent));
  }

  addError(message: string): void {
    this.#errors.unshift({ at: new Date(this.#now()).toISOString(), message });
    if (this.#errors.length > MAX_ERRORS) this.#errors.pop();
  }

  setServerState(server: string, state: ServerState): void {
    this.#servers.set(server, state);
  }

  serverState(server: string): ServerState {
    return this.#servers.get(server) ?? { state: 'unknown' };
  }

  handles(): { topHandles: Ranked[]; topMisses: Ranked[] } {
    return { topHandles: this.#handles.top(), topMisses: this.#misses.top() };
  }

  clients(): { networks: Ranked[]; agents: Ranked[] } {
    return { networks: this.#networks.top(), agents: this.#agents.top() };
  }

  /** Returns the errors, newest first. */
  errors(): RecentError[] {
    return [...this.#errors];
  }
}

/** Copies the start, because a substring would retain the whole string. Headers are Latin-1. */
const copyStart = (agent: string): string =>
  Buffer.from(agent.slice(0, MAX_AGENT_LENGTH), 'latin1').toString('latin1');

export interface Ranked {
  name: string;
  count: number;
}

const MAX_NAMES = 500;
const GENERATION_MS = 5 * 60_000;

/** Counts names over the last five to ten minutes. */
class TopList {
  readonly #now: () => number;
  #young = new TopCounts(MAX_NAMES);
  #old = new TopCounts(MAX_NAMES);
  #bornAt: number;

  constructor(now: () => number) {
    this.#now = now;
    this.#bornAt = now();
  }

  add(name: string, count = 1): void {
    this.#rotate();
    this.#young.add(name, count);
  }

  top(): Ranked[] {
    this.#rotate();
    const sums = new Map(this.#young.counts);
    for (const [name, count] of this.#old.counts) sums.set(name, (sums.get(name) ?? 0) + count);
    return [...sums]
      .map(([name, count]) => ({ name, count }))
      .sort((one, other) => other.count - one.count || (one.name < other.name ? -1 : 1))
      .slice(0, MAX_RANKED);
  }

  #rotate(): void {
    const age = this.#now() - this.#bornAt;
    // The age is negative after the wall clock was set back.
    if (age >= 0 && age < GENERATION_MS) return;
    this.#old = age < 2 * GENERATION_MS ? this.#young : new TopCounts(MAX_NAMES);
    this.#young = new TopCounts(MAX_NAMES);
    this.#bornAt = this.#now();
  }
}
