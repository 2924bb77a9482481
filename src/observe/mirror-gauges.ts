// The gauges of mirrored prefixes, and the state that they show.
import { type Labels, METRICS, type MetricEntry } from './metric-list.js';

/** State of a mirrored prefix on this instance. */
export interface MirrorStatus {
  prefix: string;
  /** Whether the last list was whole, and each of its handles was read in the last walk. */
  isComplete: boolean;
  /** Number of listed handles. */
  handles: number;
  /** Infinity before the first list. */
  listAgeMs: number;
  /** Handles that the current walk has looked at, those without an entry in memory, and those not read. */
  looked: number;
  absent: number;
  failed: number;
}

type MirrorGauge = readonly [metric: MetricEntry, read: (status: MirrorStatus) => Reading];

interface Reading {
  labels: Labels;
  value: number;
}

const gauge = (metric: MetricEntry, read: (status: MirrorStatus) => number): MirrorGauge => [
  metric,
  (status) => ({ labels: { prefix: status.prefix }, value: read(status) }),
];

export const MIRROR_GAUGES: readonly MirrorGauge[] = [
  gauge(METRICS.mirrorComplete, ({ isComplete }) => Number(isComplete)),
  gauge(METRICS.mirrorHandles, ({ handles }) => handles),
  gauge(METRICS.mirrorLooked, ({ looked }) => looked),
  gauge(METRICS.mirrorAbsent, ({ absent }) => absent),
  gauge(METRICS.mirrorFailed, ({ failed }) => failed),
  gauge(METRICS.mirrorListAge, ({ listAgeMs }) => listAgeMs / 1000),
];
