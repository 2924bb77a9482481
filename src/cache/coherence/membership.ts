// An instance as a member among those that share a Redis, as the hub sees it.
import type { Change } from './message.js';

export interface Published {
  /** Its number; a ban is known by it. */
  seq: number;
  /** True: no other member answers with what the change invalidates. False: that cannot be known. */
  acknowledged: Promise<boolean>;
}

export interface Membership {
  readonly id: string;
  /** 0: changes may be missed. */
  leaseLeftMs: () => number;
  /** Undefined: Redis could not be told. */
  publish: (change: Change) => Promise<Published | undefined>;
  /** True: Redis is back, and pending changes were reported. False: `afterRenewalMs` have passed since the last renewal. */
  returned: (afterRenewalMs: number) => Promise<boolean>;
}
