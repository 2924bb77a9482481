// What handles need over all workers and instances beside the cache: a lock a key, counters, names to hand out again.
import type { RedisCommands } from '../cache/redis/commands.js';
import { type Count, createCounter } from './counters.js';
import { type KeyLock, type TakeTurn, createKeyLock } from './key-lock.js';
import {
  LocalUnclaimedNames,
  type PublishToWorkers,
  type UnclaimedNames,
  createUnclaimedNames,
} from './unclaimed-names.js';

/** Of one of several workers: the queues are in the primary. */
export interface WorkerCoordination {
  tell: PublishToWorkers;
  takeTurn: TakeTurn;
}

export interface CoordinationDeps {
  /** Where Redis is used. */
  shared: RedisCommands | undefined;
  worker?: WorkerCoordination | undefined;
  /** How long a work waits for its turn on a key (ms). */
  lockWaitMs: number;
  now: () => number;
}

export interface Coordination {
  /** Counts what names do in a minute, over all instances. */
  count: Count;
  /** Lets one work at a time touch a key, over all instances. */
  lock: KeyLock;
  /** Minted names whose response was lost. */
  unclaimed: UnclaimedNames;
  /** Applies what another worker did with a minted name. */
  receive: (line: string) => void;
}

export function createCoordination({ shared, worker, lockWaitMs, now }: CoordinationDeps): Coordination {
  const left = new LocalUnclaimedNames(now);
  const withRedis = shared && { shared };
  const lock = createKeyLock({
    waitMs: lockWaitMs,
    ...(worker && { takeTurn: worker.takeTurn }),
    ...withRedis,
  });
  return {
    count: createCounter({ now, ...withRedis }),
    lock,
    unclaimed: createUnclaimedNames({ left, lock, ...(worker && { tell: worker.tell }), ...withRedis }),
    receive(line) {
      left.receive(line);
    },
  };
}
