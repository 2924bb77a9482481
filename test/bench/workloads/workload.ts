// The arguments of every workload.
import type { Build } from '../peers/build.js';
import type { Crew } from '../peers/crew.js';
import type { Plan } from '../plan.js';
import type { Result } from '../results.js';

export interface Bench {
  plan: Plan;
  /** Starts servers that end with the workload. */
  crew: Crew;
  /** Build of another commit, which runs in the same rounds where hits and misses are measured. */
  compared: Build | undefined;
  say: (line: string) => void;
}

export type Workload = (bench: Bench) => Promise<Omit<Result, 'workload'>>;
