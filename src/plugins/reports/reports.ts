// Adds the counts of this instance to the reports each minute, and reads the reports.
import type { Host, Started } from '../../app/plugin.js';
import type { Context } from '../../context.js';
import type { AdminHandler } from '../../http/router.js';
import {
  type NameCounts,
  type PrefixCounts,
  type ReportStore,
  OTHER_PREFIXES,
  createReportStore,
} from './redis-store.js';
import { ServiceError } from '../../errors.js';
import { upperAscii } from '../../handle/handle.js';
import { FileReportStore } from './file-store.js';
import { ERRORS, type ResolutionReport, type ReportsConfig, reportQuery } from './plugin.js';
import { ReadCounter, type TakenRow } from './read-counter.js';

/** Identifies a report; the month is the current one by default. */
interface ReportQuery {
  prefix: string;
  month?: string | undefined;
}

interface Reports {
  /** @throws ServiceError REPORT_UNAVAILABLE */
  read: (query: ReportQuery) => Promise<ResolutionReport>;
  close: () => Promise<void>;
}

const HITS_EVERY_MS = 1000;
const PUBLISH_EVERY_MS = 60_000;

export function start(host: Host, { reports, upstream: { caseSensitive } }: ReportsConfig): Started {
  const { clock } = host;
  const { maxPrefixes } = reports;
  const counter = new ReadCounter(clock.wall, maxPrefixes, caseSensitive);
  const shared = host.cache.commands;
  const store =
    shared === undefined
      ? new FileReportStore(reports, host)
      : createReportStore(shared, maxPrefixes, clock.randomId());
  const { read, close } = createReports(host, counter, store);
  return {
    sentPrepared: (hit) => {
      counter.addHit(hit);
    },
    answered: (answered) => {
      counter.count(answered);
    },
    robotRead: (handle) => {
      counter.countRobot(handle);
    },
    adminHandlers: { report: createReportHandler(read) },
    close,
  };
}

const USAGE = 'give ?prefix=… without a slash, and optionally &month=YYYY-MM';

const createReportHandler =
  (read: Reports['read']): AdminHandler =>
  async (req, res) => {
    const { success, data } = reportQuery.safeParse(req.query);
    if (!success) throw new ServiceError('BAD_PARAMETER', { detail: USAGE });
    Object.assign(res.locals, { details: data });
    res.json(await read(data));
  };

/** Adds the counts of `counter` to the store each minute, and reads the reports. */
export function createReports({ clock, log }: Context, counter: ReadCounter, store: ReportStore): Reports {
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
      if (counts === undefined) throw new ServiceError(ERRORS.REPORT_UNAVAILABLE, { retryAfterMs: 1000 });
      return prefixReport({ prefix, month }, counts);
    },
    async close() {
      for (const cancel of timers) cancel();
      if (!(await publish())) log.warn('reads of the last minutes are missing in the reports');
    },
  };
}

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

function prefixReport({ prefix, month }: { prefix: string; month: string }, counts: PrefixCounts) {
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
