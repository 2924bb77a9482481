// Lets so many requests through to the Handle server at a time; the others wait in a line with an end.
import { ServiceError } from '../errors.js';

export interface GateOptions {
  /** Most requests at a time. */
  concurrency: number;
  /** Most requests that wait for their turn. */
  queue: number;
  /** How long one of them waits before it is turned away. */
  waitMs: number;
  /** One was turned away. */
  onTurnedAway?: (() => void) | undefined;
}

export interface GateUse {
  running: number;
  waiting: number;
}

/** Ends a turn that somebody else could use better; says whether it did. It must have lasted for so long (ms). */
export type GiveWay = (atLeastMs: number) => boolean;

export interface Gate {
  /** Waits for a turn and gives the function that ends it. @throws ServiceError OVERLOADED */
  enter: () => Promise<() => void>;
  /** Names a turn that may be ended early; gives the function that takes that back. */
  offer: (giveWay: GiveWay) => () => void;
  run: <T>(work: () => Promise<T>) => Promise<T>;
  use: () => GateUse;
}

interface Waiting {
  letIn: () => void;
  timers: NodeJS.Timeout[];
}

/**
 * A line without an end would only make everybody late: who cannot be served in time is told at once,
 * so that a stale record can stand in, or the caller can come back later (RFC 9110 §15.6.4).
 */
export function createGate({ concurrency, queue, waitMs, onTurnedAway }: GateOptions): Gate {
  const line = new Set<Waiting>();
  const offers = createOffers();
  let running = 0;

  function overloaded(detail: string): ServiceError {
    onTurnedAway?.();
    return new ServiceError('OVERLOADED', { detail, retryAfterMs: Math.max(waitMs, 1000) });
  }

  function leave(): void {
    const [next] = line;
    if (next === undefined) running--;
    else next.letIn();
  }

  function wait(): Promise<() => void> {
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        letIn() {
          for (const timer of waiting.timers) clearTimeout(timer);
          line.delete(waiting);
          resolve(once(leave));
        },
        timers: [
          // In time for whoever waits to get the turn.
          setTimeout(offers.takeOne, 0.75 * waitMs, waitMs / 2),
          setTimeout(() => {
            line.delete(waiting);
            reject(overloaded(`no turn within ${waitMs} ms`));
          }, waitMs),
        ],
      };
      line.add(waiting);
    });
  }

  async function enter(): Promise<() => void> {
    if (running < concurrency) {
      running++;
      return once(leave);
    }
    if (line.size >= queue) throw overloaded(`${line.size} requests are waiting already`);
    return wait();
  }

  return {
    enter,
    offer: offers.add,
    async run(work) {
      const leave = await enter();
      try {
        return await work();
      } finally {
        leave();
      }
    },
    use: () => ({ running, waiting: line.size }),
  };
}

function once(act: () => void): () => void {
  let isDone = false;
  return () => {
    if (!isDone) {
      isDone = true;
      act();
    }
  };
}

/** Turns that may be ended early. */
function createOffers(): { add: Gate['offer']; takeOne: (atLeastMs: number) => void } {
  const offered = new Set<GiveWay>();
  return {
    add(giveWay) {
      offered.add(giveWay);
      return () => offered.delete(giveWay);
    },
    takeOne(atLeastMs) {
      for (const giveWay of offered) if (giveWay(atLeastMs)) return;
    },
  };
}
