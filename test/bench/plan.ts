// Reads workloads and their size from the command line; `--quick` selects a small size.
import { parseArgs } from 'node:util';

export const WORKLOADS = [
  'hot',
  'revalidate',
  'zipf',
  'redirect',
  'redirect-tail',
  'redirect-cold',
  'tail',
  'crawler',
  'mixed',
  'servers',
  'herd',
  'miss',
  'first',
  'write',
  'overload',
  'hostile',
  'native',
  'memory',
] as const;

export type WorkloadName = (typeof WORKLOADS)[number];

export interface Plan {
  quick: boolean;
  workloads: readonly WorkloadName[];
  rounds: number;
  /** Duration per peer and round; each part of `overload` takes five times as long. */
  seconds: number;
  /** Number of handles in the Zipf loads. */
  handles: number;
  /** Number of requests drawn for a Zipf load before it repeats. */
  length: number;
  /** Number of callers in `herd`. */
  callers: number;
  /** Number of handles that one caller requests per round of `miss`; 64 callers request four times as many. */
  misses: number;
  /** Number of handles in `tail`. */
  tailHandles: number;
  /** Number of requests after each start in `first`. */
  firstRequests: number;
  /** Number of records of `memory`. */
  records: number;
  /** Upstream capacity in `mixed`, and of all three servers together in `servers` (requests per second). */
  capacityPerSecond: number;
  /** Commit to measure as an additional peer. */
  compare?: string;
  /** URL of an HDLProxy on this machine to measure in `redirect-tail`, `redirect-cold` and `tail`. */
  hdlproxy?: string;
  json: string;
}

const FULL = {
  rounds: 3,
  seconds: 2,
  handles: 30_000,
  length: 200_000,
  callers: 1000,
  misses: 3000,
  tailHandles: 100_000,
  firstRequests: 2000,
  records: 1_000_000,
  capacityPerSecond: 1000,
};

const QUICK: typeof FULL = {
  rounds: 1,
  seconds: 1,
  handles: 500,
  length: 20_000,
  callers: 200,
  misses: 200,
  tailHandles: 2000,
  firstRequests: 400,
  records: 5000,
  capacityPerSecond: 1000,
};

export const USAGE = `npm run bench -- [options]
  --quick             a short form: it shows that everything works, its figures mean nothing
  --workloads LIST    of ${WORKLOADS.join(', ')}
  --rounds NUMBER     rounds in which the peers take turns (${FULL.rounds})
  --seconds NUMBER    how long a peer is driven in a round (${FULL.seconds})
  --handles NUMBER    handles of zipf, redirect, mixed and servers (${FULL.handles})
  --records NUMBER    records of the workload memory (${FULL.records})
  --compare COMMIT    the proxy of this commit as one more peer of hot, zipf, redirect…, mixed, tail, crawler, miss and first
  --hdlproxy URL      an HDLProxy on this machine as one more peer of redirect-tail, redirect-cold and tail
  --json FILE         where the figures are written (bench.json)
`;

/** @throws Error with the invalid option */
export function readPlan(args: string[]): Plan | 'help' {
  const { values } = parseArgs({
    args,
    options: {
      quick: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
      workloads: { type: 'string', default: WORKLOADS.join(',') },
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      handles: { type: 'string' },
      records: { type: 'string' },
      compare: { type: 'string' },
      hdlproxy: { type: 'string' },
      json: { type: 'string', default: 'bench.json' },
    },
  });
  if (values.help) return 'help';
  const scale = values.quick ? QUICK : FULL;
  return {
    ...scale,
    quick: values.quick,
    json: values.json,
    ...(values.compare !== undefined && { compare: values.compare }),
    ...(values.hdlproxy !== undefined && { hdlproxy: values.hdlproxy }),
    workloads: values.workloads.split(',').map(readWorkload),
    rounds: readCount('rounds', values.rounds, { fallback: scale.rounds, most: 50 }),
    seconds: readCount('seconds', values.seconds, { fallback: scale.seconds, most: 60 }),
    handles: readCount('handles', values.handles, { fallback: scale.handles, most: 1_000_000 }),
    records: readCount('records', values.records, { fallback: scale.records, most: 10_000_000 }),
  };
}

function readWorkload(name: string): WorkloadName {
  const known = WORKLOADS.find((workload) => workload === name);
  if (known === undefined)
    throw new Error(`--workloads: there is no ${name}; known are ${WORKLOADS.join(', ')}`);
  return known;
}

function readCount(
  name: string,
  text: string | undefined,
  { fallback, most }: { fallback: number; most: number },
): number {
  const count = text === undefined ? fallback : Number(text);
  if (Number.isInteger(count) && count >= 1 && count <= most) return count;
  throw new Error(`--${name} has to be a whole number from 1 to ${most}`);
}
