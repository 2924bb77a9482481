// The metrics of load and overload: who runs, who waits, who was turned away.
import { Counter, Gauge, type Registry } from 'prom-client';
import { METRICS } from './metric-list.js';

export interface Use {
  /** Reads that are shared, or requests that are passed on. */
  kind: string;
  running: number;
  waiting: number;
}

export interface LoadMetrics {
  /** `read` is called at each scrape. */
  onCollectUse(read: () => readonly Use[]): void;
  onCollectDelay(readMs: () => number): void;
  turnedAway(kind: string): void;
  rateLimited(): void;
  connectionDropped(): void;
}

export function loadMetrics(registry: Registry): LoadMetrics {
  const registers = [registry];
  const uses: (() => readonly Use[])[] = [];
  const use = (): Use[] => uses.flatMap((read) => read());
  new Gauge({
    ...METRICS.upstreamRunning,
    registers,
    collect() {
      for (const { kind, running } of use()) this.set({ kind }, running);
    },
  });
  new Gauge({
    ...METRICS.upstreamWaiting,
    registers,
    collect() {
      for (const { kind, waiting } of use()) this.set({ kind }, waiting);
    },
  });
  const turnedAway = new Counter({ ...METRICS.turnedAway, registers });
  const rateLimited = new Counter({ ...METRICS.rateLimited, registers });
  const connectionsDropped = new Counter({ ...METRICS.connectionsDropped, registers });
  return {
    onCollectUse(read) {
      uses.push(read);
    },
    ...delayMetrics(registry),
    turnedAway(kind) {
      turnedAway.inc({ kind });
    },
    rateLimited() {
      rateLimited.inc();
    },
    connectionDropped() {
      connectionsDropped.inc();
    },
  };
}

function delayMetrics(registry: Registry): Pick<LoadMetrics, 'onCollectDelay'> {
  let readMs = (): number => 0;
  new Gauge({
    ...METRICS.eventLoopDelay,
    registers: [registry],
    aggregator: 'max',
    collect() {
      this.set(readMs() / 1000);
    },
  });
  return {
    onCollectDelay(read) {
      readMs = read;
    },
  };
}
