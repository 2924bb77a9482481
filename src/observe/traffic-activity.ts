// Counts for `GET /traffic`: the networks and agents with the most misses, and what each rule did.
import { TopList } from './top-list.js';

const COUNTERS = ['requests', 'misses', 'notFound', 'limited'] as const;
type Counter = (typeof COUNTERS)[number];

export type ClientCounts = { name: string } & Record<Counter, number>;

export interface RuleCounts {
  name: string;
  matched: number;
  limited: number;
  shadowed: number;
}

export interface TrafficReport {
  rules: RuleCounts[];
  /** Of the last five to ten minutes, without responses from the response cache. */
  networks: ClientCounts[];
  agents: ClientCounts[];
}

interface ClientRequest {
  network: string | undefined;
  agent: string;
  status: number;
  result: string;
  code: string | undefined;
}

export interface TrafficActivity {
  countRule: (name: string, result: Exclude<keyof RuleCounts, 'name'>) => void;
  countRequest: (request: ClientRequest) => void;
  report: (rules: readonly { name: string }[]) => TrafficReport;
}

/** A header may have 16 KiB. */
const MAX_AGENT_LENGTH = 200;
const MAX_CLIENTS = 20;

export function createTrafficActivity(now: () => number): TrafficActivity {
  const rules = new Map<string, RuleCounts>();
  const networks = new ClientList(now);
  const agents = new ClientList(now);
  const ofRule = (name: string): RuleCounts =>
    rules.get(name) ?? { name, matched: 0, limited: 0, shadowed: 0 };
  return {
    countRule(name, result) {
      const counts = ofRule(name);
      rules.set(name, { ...counts, [result]: counts[result] + 1 });
    },
    countRequest({ network, agent, ...answered }) {
      const counters = countersOf(answered);
      if (network !== undefined) networks.add(network, counters);
      agents.add(beginningOf(agent), counters);
    },
    report: (configured) => ({
      rules: configured.map(({ name }) => ofRule(name)),
      networks: networks.top(),
      agents: agents.top(),
    }),
  };
}

/** A copy: a part of a string keeps the whole in memory. Headers are latin1. */
const beginningOf = (agent: string): string =>
  Buffer.from(agent.slice(0, MAX_AGENT_LENGTH), 'latin1').toString('latin1');

const MISSES: readonly string[] = ['miss', 'authoritative', 'bypass'];
const REFUSALS: readonly (string | undefined)[] = ['RATE_LIMITED', 'TRAFFIC_REFUSED'];

function countersOf({ status, result, code }: Pick<ClientRequest, 'status' | 'result' | 'code'>): Counter[] {
  if (REFUSALS.includes(code)) return ['requests', 'limited'];
  if (!MISSES.includes(result)) return ['requests'];
  return status === 404 ? ['requests', 'misses', 'notFound'] : ['requests', 'misses'];
}

/** A list for each counter: bounded, and a frequent name is never missing. */
class ClientList {
  readonly #lists: Readonly<Record<Counter, TopList>>;

  constructor(now: () => number) {
    this.#lists = {
      requests: new TopList(now),
      misses: new TopList(now),
      notFound: new TopList(now),
      limited: new TopList(now),
    };
  }

  add(name: string, counters: readonly Counter[]): void {
    for (const counter of counters) this.#lists[counter].add(name);
  }

  top(): ClientCounts[] {
    const counted = COUNTERS.flatMap((counter) =>
      this.#lists[counter].top(Infinity).map(({ name, count }) => ({ ...none(name), [counter]: count })),
    );
    return sumByName(counted).slice(0, MAX_CLIENTS);
  }
}

const none = (name: string): ClientCounts => ({ name, requests: 0, misses: 0, notFound: 0, limited: 0 });

/** Sums by name; who costs the Handle server most, or would, comes first. */
function sumByName(counted: readonly ClientCounts[]): ClientCounts[] {
  const sums = new Map<string, ClientCounts>();
  for (const one of counted) {
    const known = sums.get(one.name) ?? none(one.name);
    for (const counter of COUNTERS) known[counter] += one[counter];
    sums.set(one.name, known);
  }
  const cost = ({ misses, limited }: ClientCounts): number => misses + limited;
  return [...sums.values()].sort(
    (one, other) =>
      cost(other) - cost(one) || other.requests - one.requests || (one.name < other.name ? -1 : 1),
  );
}
