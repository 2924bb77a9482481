// Mirrors one prefix: lists its handles and reads each into the cache, again and again.
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Cache } from '../cache/cache.js';
import type { Context } from '../context.js';
import { ServiceError } from '../errors.js';
import { refOfKey } from '../handle/handle.js';
import type { MirrorStatus } from '../observe/metrics.js';
import type { Resolver } from '../resolver/resolver.js';
import { OWN_WORK } from '../upstream/caller.js';
import { type HandleList, ListRefused } from './names.js';
import { type Visit, Walk, pauseMsAfter } from './walk.js';

interface PrefixMirrorParts {
  prefix: string;
  /** Maximum age of a record (ms). */
  intervalMs: number;
  /** Lists the handles; `previous` contains the keys of the last list. */
  list: (previous: ReadonlySet<string>) => Promise<HandleList>;
  memory: Pick<Cache['memory'], 'inspect'>;
  resolver: () => Pick<Resolver<unknown>, 'refresh'>;
}

export interface PrefixMirror {
  /** Returns the time for which a handle that the server does not know is unknown (ms); 0 for a listed handle. */
  unknownTtlMs: (key: string) => number;
  status: () => MirrorStatus;
  run: () => Promise<void>;
  close: () => void;
}

/** Concurrent reads; the class `background` has at most half of the slots anyway. */
const MAX_IN_FLIGHT = 8;
/** Share of the time until the next list over which a walk is spread. */
const SPREAD = 0.9;
/** Share of missing handles in memory above which the log says that the mirror does not fit. */
const MAX_ABSENT = 0.01;

const NONE: ReadonlySet<string> = new Set();

export function createPrefixMirror(parts: PrefixMirrorParts, context: Context): PrefixMirror {
  const { prefix, intervalMs, memory } = parts;
  const { log, clock } = context;
  // Two looks at a handle are this long apart, and the first may find an entry of this age.
  const cycleMs = intervalMs / 2;
  const pause = createPause(clock);
  let known: (HandleList & { listedAt: number }) | undefined;
  let walk: Walk | undefined;
  let isCopied = false;
  let isListFailing = false;

  /** Reads the list. After a failure, the last list stays. */
  async function list(listedAt: number): Promise<void> {
    try {
      known = { ...(await parts.list(known?.names ?? NONE)), listedAt };
      isListFailing = false;
      pause.end();
    } catch (failure) {
      if (!(failure instanceof ServiceError || failure instanceof ListRefused)) throw failure;
      pause.extend();
      if (!isListFailing)
        log.warn({ prefix, reason: failure.message }, 'handles of a mirrored prefix not listed');
      isListFailing = true;
    }
  }

  async function read(visit: Visit): Promise<void> {
    const { key, newerThan } = visit;
    try {
      const resolution = await parts.resolver().refresh(refOfKey(key), { newerThan, caller: OWN_WORK });
      // A stale entry means that the server has failed for a different caller.
      if (resolution.kind === 'entry' && resolution.entry.requestedAt > newerThan) return pause.end();
    } catch (failure) {
      if (!(failure instanceof ServiceError)) throw failure;
      pause.extend();
    }
    walk?.fail(visit);
  }

  async function readInTurn(current: Walk, startedAt: number): Promise<void> {
    while (!pause.isClosed()) {
      await pause.wait();
      const step = current.next(clock.now(), clock.monotonic() - startedAt);
      if (step.kind === 'end') return;
      if (step.kind === 'visit') await read(step);
      else if (step.kind === 'wait') await pause.sleep(step.ms);
      else await nextTurn();
    }
  }

  /** Reports the end of a walk. */
  function finish({ counts }: Walk, names: number, startedAt: number): void {
    const ms = Math.round(clock.monotonic() - startedAt);
    const { absent, failed } = counts;
    if (isCopied && absent > names * MAX_ABSENT)
      log.warn({ prefix, absent, remedy: 'raise cache.maxBytes' }, 'mirrored records missing in memory');
    if (!isCopied && failed === 0) log.info({ prefix, handles: names, ms }, 'mirrored prefix copied');
    isCopied = failed === 0;
  }

  async function cycle(): Promise<void> {
    const [listedAt, startedAt] = [clock.now(), clock.monotonic()];
    const previous = known?.names ?? NONE;
    await list(listedAt);
    if (known === undefined) return pause.wait();
    const { names } = known;
    // The first copy is not spread: each handle that it has not read yet is lost in an outage.
    const durationMs = isCopied ? cycleMs * SPREAD : 0;
    const entryOf = (key: string) => memory.inspect(key)?.entry;
    const current = new Walk({ names, previous, listedAt, durationMs, minAgeMs: cycleMs, entryOf });
    walk = current;
    await Promise.all(Array.from({ length: MAX_IN_FLIGHT }, () => readInTurn(current, startedAt)));
    if (pause.isClosed()) return;
    finish(current, names.size, startedAt);
    await pause.sleep(Math.max(0, startedAt + cycleMs - clock.monotonic()));
  }

  return {
    unknownTtlMs: (key) =>
      known?.isWhole === true && !known.names.has(key)
        ? Math.max(0, known.listedAt + cycleMs - clock.now())
        : 0,
    status: () => ({
      prefix,
      isComplete: isCopied && known?.isWhole === true,
      handles: known?.names.size ?? 0,
      listAgeMs: known === undefined ? Infinity : clock.now() - known.listedAt,
      ...(walk?.counts ?? { looked: 0, absent: 0, failed: 0 }),
    }),
    async run() {
      while (!pause.isClosed()) await cycle();
    },
    close: pause.close,
  };
}

/** Creates the pauses of a mirror: after a failure, longer with each further failure, and by the schedule. */
function createPause({ monotonic, after }: Context['clock']) {
  const cancels = new Set<() => void>();
  let isClosed = false;
  let failures = 0;
  let until = -Infinity;
  const sleep = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const cancel = after(ms, () => {
        cancels.delete(cancel);
        resolve();
      });
      cancels.add(cancel);
    });
  return {
    sleep,
    isClosed: () => isClosed,
    /** Waits for the end of the pause. */
    async wait(): Promise<void> {
      while (!isClosed && monotonic() < until) await sleep(until - monotonic());
    },
    /** Begins a pause after a failure. Reads that were in flight with the first failed one do not extend it. */
    extend(): void {
      if (monotonic() < until) return;
      failures++;
      until = monotonic() + pauseMsAfter(failures);
    },
    end(): void {
      failures = 0;
    },
    /** Ends all work; a promise that sleeps stays pending. */
    close(): void {
      isClosed = true;
      for (const cancel of cancels) cancel();
    },
  };
}
