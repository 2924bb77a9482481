// What a load on the proxy showed, in numbers and as a table.
import type { Load } from './load.js';

export interface BenchReport {
  seconds: number;
  answers: number;
  perSecond: number;
  /** Of the answers, from 0 to 1; null when there were none. */
  hitShare: number | null;
  latencyMs: { p50: number; p90: number; p99: number; max: number } | null;
  statuses: Record<string, number>;
  unanswered: number;
}

export function benchReport({ seconds, latenciesMs, statuses, hits, unanswered }: Load): BenchReport {
  const sorted = Float64Array.from(latenciesMs).sort();
  const answers = sorted.length;
  /** The nearest rank: a time that was measured. */
  const percentile = (share: number): number => rounded(sorted[Math.ceil(share * answers) - 1] ?? 0);
  const latencyMs = { p50: percentile(0.5), p90: percentile(0.9), p99: percentile(0.99), max: percentile(1) };
  return {
    seconds: rounded(seconds),
    answers,
    perSecond: Math.round(answers / seconds),
    hitShare: answers === 0 ? null : hits / answers,
    latencyMs: answers === 0 ? null : latencyMs,
    statuses: Object.fromEntries(statuses),
    unanswered,
  };
}

export function benchTable(report: BenchReport): string {
  const { seconds, answers, perSecond, hitShare, latencyMs, statuses, unanswered } = report;
  const rows: [string, string][] = [
    ['answers', `${answers} in ${seconds} s (${perSecond}/s)`],
    ['hits', hitShare === null ? '–' : `${(hitShare * 100).toFixed(1)} %`],
    ['latency', latencyMs === null ? '–' : latencyLine(latencyMs)],
    ...Object.entries(statuses).map(([status, count]): [string, string] => [
      `status ${status}`,
      String(count),
    ]),
    ['no answer', String(unanswered)],
  ];
  return rows.map(([name, value]) => `${name.padEnd(12)} ${value}`).join('\n');
}

const latencyLine = (latencyMs: NonNullable<BenchReport['latencyMs']>): string =>
  Object.entries(latencyMs)
    .map(([name, ms]) => `${name} ${ms} ms`)
    .join(' · ');

const rounded = (value: number): number => Math.round(value * 100) / 100;
