// What metrics cannot answer: the most frequent handles, networks and agents, the last errors and why a server fails.
import { type Ranked, TopList } from './top-list.js';

interface RecentError {
  /** ISO 8601. */
  at: string;
  message: string;
}

/** Whether a server works, by its last requests; of one that fails with the error's code, cause and remedy. */
export interface ServerState {
  state: 'unknown' | 'working' | 'failing';
  code?: string;
  cause?: string;
  remedy?: string | undefined;
}

interface ClientRequest {
  network: string | undefined;
  agent: string;
  result: string;
  code: string | undefined;
}

const MAX_ERRORS = 20;
const MAX_RANKED = 20;
/** A header may have 16 KiB. */
const MAX_AGENT_LENGTH = 200;

const MISSES: readonly string[] = ['miss', 'authoritative', 'bypass'];
const REFUSALS: readonly (string | undefined)[] = ['RATE_LIMITED', 'TRAFFIC_REFUSED'];

/** Lists cover the last five to ten minutes. */
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

  /** Counts a request that costs the Handle server, or would if it were not refused. */
  countClient({ network, agent, result, code }: ClientRequest): void {
    if (!MISSES.includes(result) && !REFUSALS.includes(code)) return;
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
    return { topHandles: this.#handles.top(MAX_RANKED), topMisses: this.#misses.top(MAX_RANKED) };
  }

  clients(): { networks: Ranked[]; agents: Ranked[] } {
    return { networks: this.#networks.top(MAX_RANKED), agents: this.#agents.top(MAX_RANKED) };
  }

  /** The last one first. */
  errors(): RecentError[] {
    return [...this.#errors];
  }
}

/** A copy: a part of a string keeps the whole in memory. Headers are latin1. */
const copyStart = (agent: string): string =>
  Buffer.from(agent.slice(0, MAX_AGENT_LENGTH), 'latin1').toString('latin1');
