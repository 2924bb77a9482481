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
  /**
   * Waits for a turn and gives the function that ends it. One `key` gets a part of all turns only, and of the line:
   * a record for which the server hangs takes up no more than that, however often it is asked for.
   *
   * @throws ServiceError OVERLOADED
   */
  enter: (key?: string) => Promise<() => void>;
  /** Names a turn that may be ended early; gives the function that takes that back. */
  offer: (giveWay: GiveWay) => () => void;
  run: <T>(work: () => Promise<T>, key?: string) => Promise<T>;
  use: () => GateUse;
}

/** With each login a part of its own: wrong passwords must not take the turns of the owner of a handle. */
export const callerKey = (key: string, authorization = ''): string => `${key} ${authorization}`;

interface Waiting {
  key: string | undefined;
  letIn: () => void;
}

/** The part of one key: of all turns an eighth, and of the line a half. */
const PARTS = { turns: 8, line: 2 };

/**
 * A line without an end would only make everybody late: who cannot be served in time is told at once,
 * so that a stale record can stand in, or the caller can come back later (RFC 9110 §15.6.4).
 */
export function createGate(options: GateOptions): Gate {
  const { concurrency, queue, waitMs } = options;
  const overloaded = createTurnAway(options);
  const line = new Set<Waiting>();
  const offers = createOffers();
  const turns = createTally(concurrency, PARTS.turns);
  const places = createTally(queue, PARTS.line);

  function begin(key?: string): () => void {
    turns.add(key);
    return once(() => {
      turns.remove(key);
      letNextIn(line, turns);
    });
  }

  function wait(key?: string): Promise<() => void> {
    places.add(key);
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        for (const timer of timers) clearTimeout(timer);
        line.delete(waiting);
        places.remove(key);
      };
      const letIn = (): void => {
        leave();
        resolve(begin(key));
      };
      const waiting = { key, letIn };
      line.add(waiting);
      const timers = [
        // In time for whoever waits to get the turn.
        setTimeout(offers.takeOne, 0.75 * waitMs, waitMs / 2),
        setTimeout(() => {
          leave();
          reject(overloaded(`no turn within ${waitMs} ms`));
        }, waitMs),
      ];
    });
  }

  async function enter(key?: string): Promise<() => void> {
    if (!turns.isFullFor(key)) return begin(key);
    if (places.isFullFor(key)) throw overloaded(`${line.size} requests are waiting already`);
    return wait(key);
  }

  return {
    enter,
    offer: offers.add,
    run: createRun(enter),
    use: () => ({ running: turns.count(), waiting: line.size }),
  };
}

function createTurnAway({ waitMs, onTurnedAway }: GateOptions): (detail: string) => ServiceError {
  return function overloaded(detail) {
    onTurnedAway?.();
    return new ServiceError('OVERLOADED', { detail, retryAfterMs: Math.max(waitMs, 1000) });
  };
}

/** Runs work in a turn. */
function createRun(enter: Gate['enter']): Gate['run'] {
  return async function run(work, key) {
    const leave = await enter(key);
    try {
      return await work();
    } finally {
      leave();
    }
  };
}

/** The first who may have a turn. */
function letNextIn(line: ReadonlySet<Waiting>, turns: Pick<Tally, 'isFullFor'>): void {
  for (const next of line) {
    if (turns.isFullFor(next.key)) continue;
    next.letIn();
    return;
  }
}

type Tally = ReturnType<typeof createTally>;

/** Counts, in all and of each key. Nobody shares a key that is undefined. */
function createTally(most: number, parts: number) {
  const mostOfKey = Math.ceil(most / parts);
  const counts = new Map<string, number>();
  let all = 0;

  function change(key: string | undefined, by: number): void {
    all += by;
    if (key === undefined) return;
    const count = (counts.get(key) ?? 0) + by;
    if (count > 0) counts.set(key, count);
    else counts.delete(key);
  }

  return {
    count: () => all,
    isFullFor: (key?: string): boolean =>
      all >= most || (key !== undefined && (counts.get(key) ?? 0) >= mostOfKey),
    add(key?: string): void {
      change(key, 1);
    },
    remove(key?: string): void {
      change(key, -1);
    },
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
