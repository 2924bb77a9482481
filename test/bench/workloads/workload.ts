// Defines the arguments of a workload.
import type { Build } from '../peers/build.js';
import type { Crew } from '../peers/crew.js';
import type { Plan } from '../plan.js';
import type { Result } from '../results.js';

export interface Bench {
  plan: Plan;
  /** Starts servers that are stopped at the end of the stage. */
  crew: Crew;
  /** Build of a different commit, to measure in the same rounds for hits and misses. */
  compared: Build | undefined;
  say: (line: string) => void;
}

export type Workload = (bench: Bench) => Promise<Omit<Result, 'workload'>>;
