// Tracks what metrics cannot show: top handles and clients, recent errors, causes of server failures.
import { TopCounts } from './top-counts.js';

/** A server's state after its last request, with the error's code, cause and remedy if it failed. */
export interface ServerState {
  state: 'unknown' | 'working' | 'failing';
  code?: string;
  cause?: string;
  remedy?: string | undefined;
}

export interface ClientRequest {
  network: string | undefined;
  agent: string;
  result: string;
  /** Whether the request is rejected because of its client. */
  isRejected: boolean;
}

const MAX_ERRORS = 20;
const MAX_RANKED = 20;
const MAX_AGENT_LENGTH = 200;

const MISSES: readonly string[] = ['miss', 'authoritative', 'bypass'];

export type Recent = ReturnType<typeof createRecent>;

/** Creates a log of recent activity; its top lists cover the last five to ten minutes. */
export function createRecent(now: () => number) {
  const [handles, misses] = [createTopList(now), createTopList(now)];
  const [networks, agents] = [createTopList(now), createTopList(now)];
  const errors: { at: string; message: string }[] = [];
  const servers = new Map<string, ServerState>();
  return {
    countHandle(handle: string, result: string, times = 1): void {
      handles.add(handle, times);
      if (result === 'miss') misses.add(handle, times);
    },
    /** Counts a request that reaches the Handle server, or would if it were not rejected. */
    countClient({ network, agent, result, isRejected }: ClientRequest): void {
      if (!MISSES.includes(result) && !isRejected) return;
      if (network !== undefined) networks.add(network, 1);
      // Copied, because a substring would retain the whole string. Headers are Latin-1.
      agents.add(Buffer.from(agent.slice(0, MAX_AGENT_LENGTH), 'latin1').toString('latin1'), 1);
    },
    addError(message: string): void {
      errors.unshift({ at: new Date(now()).toISOString(), message });
      if (errors.length > MAX_ERRORS) errors.pop();
    },
    setServerState(server: string, state: ServerState): void {
      servers.set(server, state);
    },
    serverState: (server: string): ServerState => servers.get(server) ?? { state: 'unknown' },
    handles: () => ({ topHandles: handles.top(), topMisses: misses.top() }),
    clients: () => ({ networks: networks.top(), agents: agents.top() }),
    errors: () => [...errors],
  };
}

export interface Ranked {
  name: string;
  count: number;
}

const MAX_NAMES = 500;
const GENERATION_MS = 5 * 60_000;

function createTopList(now: () => number) {
  let [young, old] = [new TopCounts(MAX_NAMES), new TopCounts(MAX_NAMES)];
  let bornAt = now();

  function rotate(): void {
    const age = now() - bornAt;
    // The age is negative after the wall clock was set back.
    if (age >= 0 && age < GENERATION_MS) return;
    old = age < 2 * GENERATION_MS ? young : new TopCounts(MAX_NAMES);
    young = new TopCounts(MAX_NAMES);
    bornAt = now();
  }

  return {
    add(name: string, count: number): void {
      rotate();
      young.add(name, count);
    },
    top(): Ranked[] {
      rotate();
      const sums = new Map(young.counts);
      for (const [name, count] of old.counts) sums.set(name, (sums.get(name) ?? 0) + count);
      return [...sums]
        .map(([name, count]) => ({ name, count }))
        .sort((one, other) => other.count - one.count || (one.name < other.name ? -1 : 1))
        .slice(0, MAX_RANKED);
    },
  };
}
