// One run of the simulator: a world of one seed, its clients and its faults, with the invariants checked after every step.
import { Invariants } from './invariants.js';
import type { Random } from './random.js';
import { type Counted } from './requests.js';
import { Violation } from './violation.js';
import { Workload } from './workload.js';
import { World, type WorldOptions } from './world.js';

export interface RunOptions {
  /** Virtual time. */
  seconds?: number;
  keptLines?: number;
}

export interface RunResult {
  seed: number;
  seconds: number;
  hash: string;
  events: number;
  counts: Record<Counted | 'unconfirmedWrites' | 'upstreamReads', number>;
  violation?: Violation;
  /** The newest lines of the trace. */
  lines: readonly string[];
}

const DEFAULT_SECONDS = 120;
const CALM_MS = 20_000;

export async function run(
  seed: number,
  { seconds = DEFAULT_SECONDS, keptLines = 0 }: RunOptions = {},
): Promise<RunResult> {
  const world = await World.create(seed, (random) => ({ ...chooseOptions(random), keptLines }));
  const violation = await violationOf(world, seconds * 1000);
  const { trace, scheduler } = world.simulation;
  return {
    seed,
    seconds: world.now / 1000,
    hash: trace.hash,
    events: scheduler.eventCount,
    counts: {
      ...world.requests.counts,
      unconfirmedWrites: world.history.unconfirmedCount,
      upstreamReads: world.upstream.readCount,
    },
    ...(violation && { violation }),
    lines: trace.lines,
  };
}

async function violationOf(world: World, ms: number): Promise<Violation | undefined> {
  const { scheduler } = world.simulation;
  const invariants = new Invariants(world);
  const workload = new Workload(world);
  const goOn = async (until: number): Promise<void> => {
    await scheduler.runUntil(until, () => {
      invariants.check();
      return false;
    });
  };
  try {
    for (const instance of world.instances) instance.start();
    workload.start();
    await goOn(ms);
    await goOn(ms + CALM_MS);
    invariants.checkLinked();
    workload.stop();
    return undefined;
  } catch (error) {
    if (error instanceof Violation) return error;
    throw error;
  }
}

function chooseOptions(random: Random): Omit<WorldOptions, 'keptLines'> {
  return {
    instances: random.integer(1, 4),
    writesWithout: random.pick(['wait', 'refuse']),
    lostMaxAgeMs: random.pick([0, 0, 2000]),
    commandTimeoutMs: random.pick([50, 200]),
  };
}
