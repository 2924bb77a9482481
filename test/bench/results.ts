// Defines the results of measurements, and merges rounds.
import type { WorkloadName } from './plan.js';
import { median } from './statistics.js';

/** All possible measurements, in table order. */
export const COLUMNS = {
  answersPerSecond: 'answers/s',
  p50Ms: 'p50 ms',
  p99Ms: 'p99 ms',
  addedP50Ms: 'added p50 ms',
  addedP99Ms: 'added p99 ms',
  busyAnswersPerSecond: 'answers/s, 64 callers',
  upstreamPer1000: 'upstream requests per 1,000',
  readerHitsPercent: 'hits of readers, %',
  upstreamRequests: 'upstream requests',
  cpuMicroseconds: 'CPU µs per answer',
  politeAsked: 'misses of polite clients',
  politeAnswered: 'answered',
  politeShare: 'share of what is possible',
  politeP99Ms: 'their p99 ms',
  inTimePercent: 'in 50 ms, %',
  unanswered: 'without an answer',
  hostileDone: 'expensive: 2xx, 3xx',
  hostileRefused: '404, 412',
  hostileBusy: '503',
  greedyAnswered: 'greedy misses answered',
  writes: 'writes',
  oldAnswers: 'old answers after a write',
  oldForMs: 'old for at most ms',
  redisErrors: 'Redis late or away',
  lastMs: 'last answer after ms',
  rssMiB: 'RSS MiB',
  boundMiB: 'cache.maxBytes MiB',
  entries: 'records kept',
  bytesPerRecord: 'RSS bytes per record',
  countedPerRecord: 'counted bytes per record',
  notFound: '404',
  wrong: 'wrong answers',
} as const;

export type Column = keyof typeof COLUMNS;
export type Figures = Partial<Record<Column, number>>;

export interface Row {
  peer: string;
  /** Median over the rounds. */
  median: Figures;
  rounds: Figures[];
}

export interface Result {
  workload: WorkloadName;
  /** Description in one sentence. */
  about: string;
  rows: Row[];
}

/** Collects figures by peer and round. */
export class Ledger {
  readonly #rounds = new Map<string, Figures[]>();

  add(peer: string, figures: Figures): void {
    this.#rounds.set(peer, [...(this.#rounds.get(peer) ?? []), figures]);
  }

  rows(): Row[] {
    return [...this.#rounds].map(([peer, rounds]) => ({ peer, median: medianOf(rounds), rounds }));
  }
}

function medianOf(rounds: readonly Figures[]): Figures {
  const columns = (Object.keys(COLUMNS) as Column[]).filter((column) => rounds[0]?.[column] !== undefined);
  return Object.fromEntries(
    columns.map((column) => [column, median(rounds.map((figures) => figures[column] ?? NaN))]),
  );
}

/** Returns responses per second, from the column that the workload uses. */
export const speedOf = ({ answersPerSecond, busyAnswersPerSecond }: Figures): number | undefined =>
  answersPerSecond ?? busyAnswersPerSecond;

export interface Spread {
  median: number;
  least: number;
  most: number;
}

/** Returns the speed ratio of two peers over the rounds; undefined if speed was not measured. */
export function ratioOf(one: Row, other: Row): Spread | undefined {
  const ratios = one.rounds.flatMap((figures, round) => {
    const [mine, theirs] = [speedOf(figures), speedOf(other.rounds[round] ?? {})];
    return mine === undefined || theirs === undefined ? [] : [mine / theirs];
  });
  return ratios.length === 0 ? undefined : spreadOf(ratios);
}

export const spreadOf = (numbers: readonly number[]): Spread => ({
  median: median(numbers),
  least: Math.min(...numbers),
  most: Math.max(...numbers),
});

export const rowOf = ({ rows }: Result, peer: string): Row | undefined =>
  rows.find((row) => row.peer === peer);
