// Adds the counts of this instance to the reports each minute, and reads the reports.
import type { Config } from '../config/schema.js';
import type { Context } from '../context.js';
import {
  type NameCounts,
  type PrefixCounts,
  type ReportStore,
  OTHER_PREFIXES,
} from '../coordination/report-store.js';
import { ServiceError } from '../errors.js';
import { upperAscii } from '../handle/handle.js';
import { FileReportStore } from './file-store.js';
import type { TakenRow } from './read-counter.js';

/** Identifies a report; the month is the current one by default. */
export interface ReportQuery {
  prefix: string;
  month?: string | undefined;
}

export interface Reports {
  /** @throws ServiceError REPORTS_DISABLED, REPORT_UNAVAILABLE */
  read: (query: ReportQuery) => Promise<ReturnType<typeof reportOf>>;
  close: () => Promise<void>;
}

const HITS_EVERY_MS = 1000;
const PUBLISH_EVERY_MS = 60_000;

/** Creates the reports. `shared`: the store in Redis; undefined without Redis. */
export function createReports(
  { reports: { folder, maxPrefixes } }: Pick<Config, 'reports'>,
  context: Context,
  shared: ReportStore | undefined,
): Reports {
  const { reads: counter, clock, log } = context;
  if (counter === undefined) return DISABLED;
  const store = shared ?? new FileReportStore({ folder, maxPrefixes }, context);
  const publish = createPublish(() => counter.take(), store);
  const timers = [
    repeat(clock, HITS_EVERY_MS, () => {
      counter.countHits();
    }),
    repeat(clock, PUBLISH_EVERY_MS, publish),
  ];
  return {
    async read({ prefix: given, month = new Date(clock.wall()).toISOString().slice(0, 7) }) {
      const prefix = given === OTHER_PREFIXES ? given : upperAscii(given);
      const counts = (await publish()) ? await store.read(prefix, month) : undefined;
      if (counts === undefined) throw new ServiceError('REPORT_UNAVAILABLE', { retryAfterMs: 1000 });
      return reportOf({ prefix, month }, counts);
    },
    async close() {
      for (const cancel of timers) cancel();
      if (!(await publish())) log.warn('reads of the last minutes are missing in the reports');
    },
  };
}

const DISABLED: Reports = {
  read: () => Promise.reject(new ServiceError('REPORTS_DISABLED', { detail: 'set reports.enabled' })),
  close: () => Promise.resolve(),
};

/**
 * Creates a function that adds all counts to the store, in order, and returns whether the store has them.
 * Counts that it has not confirmed are sent again with the same sequence number before any others.
 */
function createPublish(take: () => TakenRow[], store: ReportStore): () => Promise<boolean> {
  let unsent: TakenRow[] = [];
  let sequence = 0;
  let last: Promise<unknown> = Promise.resolve();

  async function addAll(): Promise<boolean> {
    for (let next = unsent[0]; next !== undefined; next = unsent[0]) {
      const { row, ...rest } = next;
      if (!(await store.add({ ...rest, ...row.counts() }, sequence))) return false;
      unsent.shift();
      sequence++;
    }
    return true;
  }

  async function publish(): Promise<boolean> {
    // Counts are taken only after earlier ones are stored, so that they do not accumulate during an outage.
    if (!(await addAll())) return false;
    unsent = take();
    const isStored = await addAll();
    await store.save?.();
    return isStored;
  }

  return () => {
    const publishing = last.then(publish);
    last = publishing;
    return publishing;
  };
}

/** Repeats `work` until the returned function is called. */
function repeat({ after }: Context['clock'], everyMs: number, work: () => unknown): () => void {
  let cancel = (): void => undefined;
  const schedule = (): void => {
    cancel = after(everyMs, () => {
      schedule();
      work();
    });
  };
  schedule();
  return () => {
    cancel();
  };
}

function reportOf({ prefix, month }: { prefix: string; month: string }, counts: PrefixCounts) {
  const { unknown = 0, robots = 0, ...byInterface } = counts.totals;
  const resolutions = Object.values(byInterface).reduce((sum, count) => sum + count, 0);
  const lists = { topHandles: topOf(counts.handles), topUnknown: topOf(counts.unknown) };
  return { prefix, month, resolutions, unknown, robots, byInterface, ...lists };
}

function topOf({ names, maxError }: NameCounts) {
  const handles = names
    .map(([handle, count]) => ({ handle, count }))
    .sort((one, other) => other.count - one.count || (one.handle < other.handle ? -1 : 1));
  return { exact: maxError === 0, maxError, handles };
}
