// Adds the counts of this instance to the reports each minute, and reads the reports.
import type { z } from 'zod';
import type { Started } from '../../plugin.js';
import type { Host } from '../../host.js';
import type { Context } from '../../context.js';
import { repeat, untilDeadline } from '../../clock.js';
import { ServiceError } from '../../errors.js';
import { type HandleRef, upperAscii } from '../../handle/handle.js';
import type { AnsweredRead } from '../../hooks.js';
import type { AdminHandler } from '../../http/router.js';
import type { PreparedHit } from '../../observe/hits.js';
import { SerialFlight } from '../../resolver/single-flight.js';
import type { RefOf } from '../../upstream/routing.js';
import { FileReportStore, createTroubleLog } from './file-store.js';
import { ERRORS, reportQuery, type ReportsConfig, type ResolutionReport } from './plugin.js';
import { PrefixRow } from './prefix-row.js';
import {
  createReportStore,
  type NameCounts,
  OTHER_PREFIXES,
  type PrefixCounts,
  type ReportStore,
} from './redis-store.js';

interface Reports {
  /** The month is the current one by default. @throws ServiceError REPORT_UNAVAILABLE */
  read: (query: z.output<typeof reportQuery>) => Promise<ResolutionReport>;
  close: () => Promise<void>;
}

const HITS_EVERY_MS = 1000;
const PUBLISH_EVERY_MS = 60_000;
/** Maximum time that a report or the stop waits for the store: a network drive may never respond. */
const PUBLISH_MS = 5000;

export function start(host: Host, { reports }: ReportsConfig): Started {
  const { clock } = host;
  const { maxPrefixes } = reports;
  const counter = new ReadCounter(clock.wall, maxPrefixes, host.refOf);
  const shared = host.cache.commands;
  if (shared === undefined && reports.folder === undefined)
    host.log.warn({ remedy: 'set redis.url or reports.folder' }, 'reports end with this process');
  const store =
    shared === undefined
      ? new FileReportStore(reports, host)
      : createReportStore(shared, maxPrefixes, clock.randomId());
  const { read, close } = createReports(host, counter, store);
  return {
    sentPrepared: (hit) => counter.addHit(hit),
    answered: (answered) => counter.countRead(answered),
    robotRead: (handle) => counter.countRobot(handle),
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
export function createReports(context: Context, counter: ReadCounter, store: ReportStore): Reports {
  const { clock, log } = context;
  const publishNext = createPublish(() => counter.take(), store);
  const late = (): Error => new Error('no response from the store');
  const remedy = 'look for a slow disk or network drive in reports.folder, or a slow Redis';
  const logTrouble = createTroubleLog(context, 'reports not stored', remedy);
  const publish = (): Promise<boolean> =>
    untilDeadline(publishNext(), PUBLISH_MS, late, clock).catch((error: unknown) => {
      logTrouble(error);
      return false;
    });
  const timers = [
    repeat(clock, HITS_EVERY_MS, () => counter.countHits()),
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
  // Calls during a publication share the next one, or they would accumulate while the store does not respond.
  const publications = new SerialFlight<boolean>();
  let unsent: TakenRow[] = [];
  let sequence = 0;

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
    let isStored = await addAll();
    if (isStored) {
      // Counts are taken only after earlier ones are stored, so that they do not accumulate during an outage.
      unsent = take();
      isStored = await addAll();
    }
    await store.save?.();
    return isStored;
  }

  return () => publications.join('', publish);
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

// Counts the reads of this instance by prefix, until they are added to the reports.

/** A row that no longer changes. */
interface TakenRow {
  /** Month in UTC, such as `2026-11`. */
  month: string;
  prefix: string;
  row: PrefixRow;
}

/** Maximum prepared responses with uncounted hits, each of which stays in memory. */
const MAX_UNCOUNTED = 16_384;

export class ReadCounter {
  /** Counts of the current month, by prefix. */
  #rows = new Map<string, PrefixRow>();
  #earlier: TakenRow[] = [];
  #month = '';
  /** Start and end of the month (ms since the epoch). */
  #monthStart = Infinity;
  #monthEnd = -Infinity;
  /** The prefixes of the month that have a row; they remain when counts are taken. */
  readonly #prefixes = new Set<string>();
  #repeatedHits: PreparedHit[] = [];

  constructor(
    private readonly now: () => number,
    private readonly maxPrefixes: number,
    private readonly refOf: RefOf,
  ) {}

  countRead({ handle: { key, prefix }, interface: family, exists }: AnsweredRead, times = 1): void {
    const row = this.#rowOf(prefix, exists);
    row.addTotal(family, times);
    if (!exists) row.addTotal('unknown', times);
    row.addName(key, exists, times);
  }

  /** Adds a prepared hit, which the next `countHits` counts. A repeated hit costs only an increment. */
  addHit(hit: PreparedHit): void {
    if (hit.repeats++ > 0) return;
    this.#repeatedHits.push(hit);
    if (this.#repeatedHits.length === MAX_UNCOUNTED) this.countHits();
  }

  /** Counts the added hits. Call it about once a second, because it releases their responses. */
  countHits(): void {
    for (const hit of this.#repeatedHits) {
      const handle = this.refOf(hit.handle);
      this.countRead({ handle, interface: hit.family, exists: hit.exists }, hit.repeats);
      hit.repeats = 0;
    }
    this.#repeatedHits = [];
  }

  /** Counts a read that a traffic rule attributes to a robot, in addition to `countRead`. */
  countRobot({ prefix }: HandleRef): void {
    this.#rowOf(prefix, false).addTotal('robots', 1);
  }

  take(): TakenRow[] {
    this.countHits();
    this.#endRows();
    return this.#earlier.splice(0);
  }

  #rowOf(given: string, exists: boolean): PrefixRow {
    const now = this.now();
    // The wall clock may have been set back.
    if (now >= this.#monthEnd || now < this.#monthStart) this.#startMonth(new Date(now));
    const known = this.#rows.get(given);
    if (known !== undefined) return known;
    // Copies, because a substring would keep the whole request line in memory.
    const prefix = Buffer.from(given).toString();
    const name = this.#admits(prefix, exists) ? prefix : OTHER_PREFIXES;
    const row = this.#rows.get(name) ?? new PrefixRow();
    this.#rows.set(name, row);
    return row;
  }

  /** Half of the rows are for prefixes of handles that exist, because other names can be invented. */
  #admits(prefix: string, exists: boolean): boolean {
    if (this.#prefixes.has(prefix)) return true;
    const isFull = this.#prefixes.size * (exists ? 1 : 2) >= this.maxPrefixes;
    if (!isFull) this.#prefixes.add(prefix);
    return !isFull;
  }

  #endRows(): void {
    for (const [prefix, row] of this.#rows) this.#earlier.push({ month: this.#month, prefix, row });
    this.#rows = new Map();
  }

  #startMonth(at: Date): void {
    this.#endRows();
    this.#prefixes.clear();
    this.#month = at.toISOString().slice(0, 7);
    this.#monthStart = Date.UTC(at.getUTCFullYear(), at.getUTCMonth());
    this.#monthEnd = Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1);
  }
}
