// One simulator run: the world, clients and faults of a seed, with the invariants checked after every step.
import type { ChangeFeed } from './change-feed.js';
import { FAULT_NAMES, FaultDriver, type FaultName, FRONT_FAULTS, UPSTREAM_FAULTS } from './fault-driver.js';
import { Invariants } from './invariants.js';
import { RECOVERY_MS, checkLiveness } from './liveness.js';
import { lowerLimits } from './mutation-tools.js';
import type { Random } from './random.js';
import { type Counted } from './requests.js';
import { Violation } from './violation.js';
import { Workload } from './workload.js';
import { World, type WorldOptions } from './world.js';

export interface RunOptions {
  /** Duration in virtual time. */
  seconds?: number;
  keptLines?: number;
  /** The faults to inject, by default all. */
  faults?: readonly FaultName[];
  /** Options that override those drawn from the seed. */
  world?: Partial<WorldOptions>;
}

export interface RunResult {
  seed: number;
  seconds: number;
  hash: string;
  events: number;
  counts: Record<Counted | 'unconfirmedWrites' | 'upstreamReads', number> &
    Partial<ChangeFeed['counts'] & { frontHits: number }>;
  faults: ReadonlyMap<FaultName, number>;
  violation?: Violation;
  /** The newest trace lines. */
  lines: readonly string[];
}

/** A cache in front, behind which no instance may serve an older record by an exception. */
export const WITH_FRONT = {
  faults: FRONT_FAULTS,
  world: { hasFront: true, hasPlugins: false, disconnectedWrites: 'reject', disconnectedMaxAgeMs: 0 },
} satisfies RunOptions;

/** Instances without plugins, and with the limits of the product. */
export const PLAIN = { hasPlugins: false, hasLowLimits: false } satisfies Partial<WorldOptions>;

const DEFAULT_SECONDS = 120;
/** Interval between checks whether faults and requests have ended. */
const STEP_MS = 100;
const MAX_LATE_MS = 10_000;
/** Mean pauses between faults, in ms. */
const MEAN_PAUSES_MS = [1000, 3000, 8000];

export async function run(
  seed: number,
  { seconds = DEFAULT_SECONDS, keptLines = 0, faults = FAULT_NAMES, world: fixed }: RunOptions = {},
): Promise<RunResult> {
  // Polls of a lock have a random delay.
  const { random: unseeded } = Math;
  Math.random = () => 0.5;
  const world = await World.create(seed, (random) => ({
    ...chooseOptions(random),
    ...fixed,
    keepsRedis: faults.every((name) => UPSTREAM_FAULTS.includes(name)),
    keptLines,
  }));
  const driver = new FaultDriver(world, faults);
  const restore = world.options.hasLowLimits ? lowerLimits() : () => undefined;
  const violation = await violationOf(world, driver, seconds * 1000);
  restore();
  Math.random = unseeded;
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
      ...world.changes?.counts,
      ...(world.front && { frontHits: world.front.hits }),
    },
    faults: driver.counts,
    ...(violation && { violation }),
    lines: trace.lines,
  };
}

async function violationOf(world: World, driver: FaultDriver, ms: number): Promise<Violation | undefined> {
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
    startInstances(world);
    workload.start();
    driver.start(world.random.pick(MEAN_PAUSES_MS));
    await goOn(ms);
    driver.stop();
    world.front?.stop();
    while (driver.hasActiveFaults) await goOn(world.now + STEP_MS);
    await goOn(world.now + RECOVERY_MS);
    workload.stop();
    while (world.requests.areOpen) await goOn(world.now + STEP_MS);
    await checkLiveness(world);
    await world.changes?.settle();
    world.changes?.check();
    return undefined;
  } catch (error) {
    if (error instanceof Violation) return error;
    throw error;
  }
}

/** Starts the instances, some of them late. */
function startInstances({ instances, random, after }: World): void {
  for (const instance of instances) {
    if (random.chance(0.7)) instance.start();
    else
      after(random.between(0, MAX_LATE_MS), 'a late start', () => {
        instance.start();
      });
  }
}

const SIZES = [1, 2, 2, 3, 3, 4];

function chooseOptions(random: Random): Omit<WorldOptions, 'keptLines'> {
  return {
    instances: random.pick(SIZES),
    disconnectedWrites: random.pick(['wait', 'reject']),
    disconnectedMaxAgeMs: random.pick([0, 0, 2000]),
    commandTimeoutMs: random.pick([50, 200]),
    hasPlugins: random.chance(0.5),
    hasLowLimits: random.chance(0.5),
  };
}
