// Selects faults and their times at a given rate.
import { Faults } from './faults.js';
import type { Random } from './random.js';
import type { World } from './world.js';

export type FaultName =
  | 'message lost'
  | 'connection lost'
  | 'cut from Redis'
  | 'cut from upstream'
  | 'slow line'
  | 'slow upstream'
  | 'process stopped'
  | 'machine suspended'
  | 'machine paused unnoticed'
  | 'process killed'
  | 'wall clock stepped'
  | 'Redis frozen'
  | 'Redis restarted empty'
  | 'Redis restarted with an old dump'
  | 'failover to a stale replica'
  | 'failover and back to the old master'
  | 'state evicted'
  | 'Redis flushed'
  | 'clock of Redis stepped';

const FAULTS: Record<FaultName, { weight: number; begin: (faults: Faults) => void }> = {
  'message lost': {
    weight: 4,
    begin: (faults) => {
      faults.loseMessages();
    },
  },
  'connection lost': {
    weight: 3,
    begin: (faults) => {
      faults.loseConnection();
    },
  },
  'cut from Redis': {
    weight: 4,
    begin: (faults) => {
      faults.cutFromRedis();
    },
  },
  'cut from upstream': {
    weight: 1,
    begin: (faults) => {
      faults.cutFromUpstream();
    },
  },
  'slow line': {
    weight: 2,
    begin: (faults) => {
      faults.slowLine();
    },
  },
  'slow upstream': {
    weight: 1,
    begin: (faults) => {
      faults.slowUpstream();
    },
  },
  'process stopped': {
    weight: 3,
    begin: (faults) => {
      faults.pauseProcess('stopped');
    },
  },
  'machine suspended': {
    weight: 2,
    begin: (faults) => {
      faults.pauseProcess('suspended');
    },
  },
  'machine paused unnoticed': {
    weight: 1,
    begin: (faults) => {
      faults.pauseProcess('unnoticed');
    },
  },
  'process killed': {
    weight: 3,
    begin: (faults) => {
      faults.kill();
    },
  },
  'wall clock stepped': {
    weight: 1,
    begin: (faults) => {
      faults.stepClock();
    },
  },
  'Redis frozen': {
    weight: 3,
    begin: (faults) => {
      faults.freezeRedis();
    },
  },
  'Redis restarted empty': {
    weight: 1,
    begin: (faults) => {
      faults.restartRedis('empty');
    },
  },
  'Redis restarted with an old dump': {
    weight: 2,
    begin: (faults) => {
      faults.restartRedis('dump');
    },
  },
  'failover to a stale replica': {
    weight: 2,
    begin: (faults) => {
      faults.failOver();
    },
  },
  'failover and back to the old master': {
    weight: 2,
    begin: (faults) => {
      faults.failBack();
    },
  },
  'state evicted': {
    weight: 1,
    begin: (faults) => {
      faults.evict();
    },
  },
  'Redis flushed': {
    weight: 1,
    begin: (faults) => {
      faults.flush();
    },
  },
  'clock of Redis stepped': {
    weight: 2,
    begin: (faults) => {
      faults.stepRedisClock();
    },
  },
};

/** Faults with which no exception lets an instance serve an older record, if it rejects writes without Redis. */
export const FRONT_FAULTS: readonly FaultName[] = [
  ...['message lost', 'connection lost', 'cut from Redis', 'cut from upstream', 'slow line', 'slow upstream'],
  ...[
    'process stopped',
    'machine suspended',
    'process killed',
    'Redis frozen',
    'Redis restarted empty',
    'Redis flushed',
  ],
] as FaultName[];

/** Faults that leave Redis and the processes intact. */
export const UPSTREAM_FAULTS: readonly FaultName[] = ['cut from upstream', 'slow upstream'];

export const FAULT_NAMES = Object.keys(FAULTS) as FaultName[];

export class FaultDriver {
  readonly counts = new Map<FaultName, number>();
  readonly #world: World;
  readonly #random: Random;
  readonly #faults: Faults;
  readonly #names: readonly FaultName[];
  #isOver = false;

  /** Schedules only the faults in `only`, by default all. */
  constructor(world: World, only: readonly FaultName[] = FAULT_NAMES) {
    this.#world = world;
    this.#faults = new Faults(world);
    this.#random = world.simulation.random.stream('times of faults');
    this.#names = only.flatMap((name) => Array.from({ length: FAULTS[name].weight }, () => name));
  }

  start(meanPauseMs: number): void {
    if (this.#names.length === 0) return;
    this.#world.after(this.#random.between(0, 2 * meanPauseMs), 'a fault', () => {
      if (this.#isOver) return;
      const name = this.#random.pick(this.#names);
      this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
      this.#world.simulation.scheduler.note(`fault: ${name}`);
      FAULTS[name].begin(this.#faults);
      this.start(meanPauseMs);
    });
  }

  get hasActiveFaults(): boolean {
    return this.#faults.areActive;
  }

  /** Starts no further faults. Active faults end as scheduled. */
  stop(): void {
    this.#isOver = true;
  }
}
