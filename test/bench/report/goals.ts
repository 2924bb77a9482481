// Checks the figures against goals.
import { EXPENSIVE_REQUESTS } from '../../support/expensive-requests.js';
import type { Wire } from '../drive/callers-by-socket.js';
import { BARE_RELAY } from '../peers/bare.js';
import type { WorkloadName } from '../plan.js';
import { HDLPROXY } from '../peers/hdlproxy.js';
import { OURS, OURS_AT_WARN } from '../peers/peer.js';
import { type Column, type Result, rowOf } from '../results.js';
import { TWO_INSTANCES } from '../workloads/herd.js';
import { EMPTY, FULL, OVERFLOWING } from '../workloads/memory.js';
import { NAME_OF } from '../workloads/native.js';
import { OURS_WITH_REDIS } from '../workloads/miss.js';
import { QUIET, nameOfLimit } from '../workloads/overload.js';
import { RECORDS } from '../workloads/redirect-once.js';

interface Goal {
  workload: WorkloadName;
  text: string;
  /** Computes the figure; undefined if a peer was not measured. */
  figure: (figureOf: FigureOf) => number | undefined;
  least?: number;
  most?: number;
}

type FigureOf = (peer: string, column: Column) => number | undefined;

const divided = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined || other === undefined ? undefined : one / other;

/** Returns the ratio of this proxy's responses per second to a peer's. */
const timesOf =
  (peer: string, ours = OURS): Goal['figure'] =>
  (of) =>
    divided(of(ours, 'answersPerSecond'), of(peer, 'answersPerSecond'));

const busyTimesOf =
  (peer: string, ours = OURS): Goal['figure'] =>
  (of) =>
    divided(of(ours, 'busyAnswersPerSecond'), of(peer, 'busyAnswersPerSecond'));

const partOfRequests =
  (peer: string): Goal['figure'] =>
  (of) =>
    divided(of(OURS, 'upstreamPer1000'), of(peer, 'upstreamPer1000'));

const speedGoals = (workload: WorkloadName): Goal[] => [
  { workload, text: 'of a bare node:http listener', figure: timesOf('bare node:http'), least: 0.9 },
  { workload, text: 'of Varnish', figure: timesOf('Varnish'), least: 1 },
  { workload, text: 'of nginx', figure: timesOf('nginx'), least: 0.5 },
];

const mixedGoals = (workload: WorkloadName, peer: string, least: number): Goal[] => [
  { workload, text: `times the answers of ${peer}`, figure: timesOf(peer), least },
  {
    workload,
    text: `of the upstream requests of ${peer}`,
    figure: partOfRequests(peer),
    most: 1 / 3,
  },
];

const herdGoal = (peer: string, most: number): Goal => ({
  workload: 'herd',
  text: `upstream requests (${peer})`,
  figure: (of) => of(peer, 'upstreamRequests'),
  most,
});

const overloadGoals = (limit: 1000 | 100): Goal[] => [
  {
    workload: 'overload',
    text: `of the misses of polite clients that are possible (${nameOfLimit(limit)})`,
    figure: (of) => of(nameOfLimit(limit), 'politeShare'),
    least: 0.9,
  },
  {
    workload: 'overload',
    text: `times the p99 of hits alone (${nameOfLimit(limit)})`,
    figure: (of) => divided(of(nameOfLimit(limit), 'p99Ms'), of(QUIET, 'p99Ms')),
    most: 2,
  },
];

/** Creates a goal for the CPU time of a native response relative to HTTP. */
const nativeGoal = (native: Wire, http: Wire): Goal => ({
  workload: 'native',
  text: `times the CPU of ${NAME_OF[http]} (${NAME_OF[native]})`,
  figure: (of) => divided(of(NAME_OF[native], 'cpuMicroseconds'), of(NAME_OF[http], 'cpuMicroseconds')),
  most: 1.1,
});

/** Creates a goal relative to reading the same records through the record interface. */
const redirectGoal = (workload: WorkloadName, most: number): Goal => ({
  workload,
  text: 'times the CPU of the record interface',
  figure: (of) => divided(of(OURS, 'cpuMicroseconds'), of(RECORDS, 'cpuMicroseconds')),
  most,
});

/** Returns a goal relative to HDLProxy's CPU time. */
const hdlProxyGoal = (workload: WorkloadName, most: number): Goal => ({
  workload,
  text: 'times the CPU of HDLProxy',
  figure: (of) => divided(of(OURS, 'cpuMicroseconds'), of(HDLPROXY, 'cpuMicroseconds')),
  most,
});

const HOSTILE = Object.keys(EXPENSIVE_REQUESTS);

const GOALS: readonly Goal[] = [
  ...speedGoals('hot'),
  ...speedGoals('zipf'),
  ...speedGoals('redirect'),
  redirectGoal('redirect-tail', 1.25),
  redirectGoal('redirect-cold', 1.18),
  hdlProxyGoal('redirect-tail', 0.5),
  hdlProxyGoal('redirect-cold', 0.8),
  hdlProxyGoal('tail', 0.5),
  { workload: 'tail', text: 'times the answers of nginx', figure: timesOf('nginx'), least: 3 },
  { workload: 'tail', text: 'µs of CPU per answer', figure: (of) => of(OURS, 'cpuMicroseconds'), most: 60 },
  {
    workload: 'crawler',
    text: '% of hits for readers',
    figure: (of) => of(OURS, 'readerHitsPercent'),
    least: 50,
  },
  ...mixedGoals('mixed', 'nginx', 4),
  ...mixedGoals('mixed', 'Varnish', 4),
  ...mixedGoals('servers', 'nginx', 4),
  herdGoal(OURS, 1),
  herdGoal(TWO_INSTANCES, 2),
  {
    workload: 'miss',
    text: 'ms added at the median',
    figure: (of) => of(OURS, 'addedP50Ms'),
    most: 1,
  },
  {
    workload: 'miss',
    text: 'times what a bare relay adds at the median',
    figure: (of) => divided(of(OURS, 'addedP50Ms'), of(BARE_RELAY, 'addedP50Ms')),
    most: 1.3,
  },
  { workload: 'miss', text: 'of a bare relay', figure: busyTimesOf(BARE_RELAY), least: 0.5 },
  {
    workload: 'miss',
    text: 'of a bare relay (at LOG_LEVEL=warn)',
    figure: busyTimesOf(BARE_RELAY, OURS_AT_WARN),
    least: 0.55,
  },
  {
    workload: 'miss',
    text: 'of its speed without Redis (with Redis)',
    figure: busyTimesOf(OURS, OURS_WITH_REDIS),
    least: 0.85,
  },
  {
    workload: 'first',
    text: 'times the median of the first of a bare relay',
    figure: (of) => divided(of(OURS, 'p50Ms'), of(BARE_RELAY, 'p50Ms')),
    most: 1,
  },
  { workload: 'first', text: 'of a bare relay', figure: timesOf(BARE_RELAY), least: 0.75 },
  ...[OURS, TWO_INSTANCES].map((peer): Goal => {
    return {
      workload: 'write',
      text: `old answers (${peer})`,
      figure: (of) => of(peer, 'oldAnswers'),
      most: 0,
    };
  }),
  ...([1000, 100] as const).flatMap(overloadGoals),
  {
    workload: 'hostile',
    text: 'ms, the 99th percentile of hits beside the worst request',
    figure: (of) => Math.max(...HOSTILE.map((row) => of(row, 'p99Ms') ?? Infinity)),
    most: 50,
  },
  {
    workload: 'hostile',
    text: '% of hits in 50 ms beside the worst request',
    figure: (of) => Math.min(...HOSTILE.map((row) => of(row, 'inTimePercent') ?? 0)),
    least: 99,
  },
  nativeGoal('native-udp', 'http'),
  nativeGoal('native-tcp', 'http-close'),
  { workload: 'memory', text: 'MiB of RSS, full', figure: (of) => of(FULL, 'rssMiB'), most: 550 },
  { workload: 'memory', text: 'of its speed when empty', figure: timesOf(EMPTY, FULL), least: 0.95 },
  ...[FULL, OVERFLOWING].map((peer): Goal => {
    const figure: Goal['figure'] = (of) => divided(of(peer, 'bytesPerRecord'), of(peer, 'countedPerRecord'));
    return {
      workload: 'memory',
      text: `of what is counted, in RSS beyond an empty process (${peer})`,
      figure,
      most: 1.3,
    };
  }),
];

export interface Verdict {
  workload: WorkloadName;
  text: string;
  figure: number;
  wanted: string;
  isReached: boolean;
}

export function judge(results: readonly Result[]): Verdict[] {
  return GOALS.flatMap(({ workload, text, figure: read, least = -Infinity, most = Infinity }) => {
    const result = results.find((each) => each.workload === workload);
    const figure = result && read((peer, column) => rowOf(result, peer)?.median[column]);
    if (figure === undefined) return [];
    const wanted = least === -Infinity ? `at most ${round(most)}` : `at least ${round(least)}`;
    return [{ workload, text, figure, wanted, isReached: figure >= least && figure <= most }];
  });
}

const round = (figure: number): string => String(Math.round(figure * 100) / 100);

export function writeVerdict({ workload, text, figure, wanted, isReached }: Verdict): string {
  return `${isReached ? 'reached    ' : 'NOT REACHED'} ${workload}: ${round(figure)} ${text} (${wanted})`;
}
