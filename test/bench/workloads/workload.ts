// What every workload is given.
import type { Crew } from '../peers/crew.js';
import type { Plan } from '../plan.js';
import type { Result } from '../results.js';

export interface Bench {
  plan: Plan;
  /** Servers started by it end with the workload. */
  crew: Crew;
  say: (line: string) => void;
}

export type Workload = (bench: Bench) => Promise<Omit<Result, 'workload'>>;
