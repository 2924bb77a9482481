// overload: hits, and greedy and polite readers of uncached handles, while the Handle server slows down
// tenfold.
import { type Driven, type SocketDrive, driveBySockets, driveOverload } from '../drive/drive.js';
import { askOnce } from '../drive/callers-by-socket.js';
import { startProxy } from '../peers/proxy.js';
import { startUpstream } from '../peers/upstream.js';
import { cpuSeconds } from '../proc.js';
import { PREFIX, nameOf, targetOf } from '../records.js';
import { type Figures, Ledger } from '../results.js';
import { assertRightAnswers } from './check.js';
import type { Workload } from './workload.js';

/** Successive Handle server capacities (requests per second). */
const LIMITS = [1000, 100] as const;
export const QUIET = 'hits alone';
export const nameOfLimit = (limit: (typeof LIMITS)[number]): string =>
  `the Handle server does ${limit.toLocaleString('en')} requests a second`;

/** Multiple of `plan.seconds`, long enough for the limit to adapt and the queue to fill. */
const ROUNDS_OF_SECONDS = 5;
const HITTERS = { callers: 20, pauseMs: 20 };
/** Maximum rate of all polite clients together. */
const MOST_MISSES_PER_SECOND = 300;

export const overload: Workload = async ({ plan, crew, say }) => {
  const seconds = plan.seconds * ROUNDS_OF_SECONDS;
  const count = seconds * LIMITS.length * MOST_MISSES_PER_SECOND;
  const upstream = await crew.start(startUpstream('demo', count));
  const proxy = await crew.start(startProxy({ upstreamUrl: upstream.url }));
  // Uses the last record for hits, because the polite clients do not reach it.
  const asked = {
    wire: 'http',
    port: Number(new URL(proxy.url).port),
    handle: `${PREFIX}/${nameOf(count)}`,
  } as const;
  await assertRightAnswers(proxy, [targetOf(nameOf(count))], upstream.url);
  const hits: SocketDrive = { ...asked, ...HITTERS, expected: await askOnce(asked), seconds };
  const ledger = new Ledger();
  const hit = async (): Promise<Figures> => {
    const cpuBefore = cpuSeconds(proxy.pid);
    const driven = await driveBySockets(hits);
    return {
      ...figuresOf(driven),
      cpuMicroseconds: ((cpuSeconds(proxy.pid) - cpuBefore) * 1e6) / driven.answers,
    };
  };
  await hit();
  ledger.add(QUIET, await hit());
  const misses = driveOverload({ url: proxy.url, control: upstream.control, seconds, limits: LIMITS });
  const during: Figures[] = [];
  for (const limit of LIMITS) {
    say(`  ${nameOfLimit(limit)}`);
    during.push(await hit());
  }
  for (const [at, { wrong = 0, ...figures }] of (await misses).entries()) {
    const [limit, beside] = [LIMITS[at], during[at]];
    if (limit === undefined) continue;
    ledger.add(nameOfLimit(limit), { ...beside, ...figures, wrong: wrong + (beside?.wrong ?? 0) });
  }
  return {
    about:
      '10 greedy clients of 20 connections ask for unknown names, 200 polite ones for a cold handle a second each; ' +
      'beside them 1,000 hits a second at most, whose times these are',
    rows: ledger.rows(),
  };
};

const figuresOf = ({ answers, seconds, p50Ms, p99Ms, badStatus, broken }: Driven): Figures => ({
  ...{ answersPerSecond: answers / seconds, p50Ms, p99Ms, wrong: badStatus + broken },
});
