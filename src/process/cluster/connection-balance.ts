// Spreads connections over the workers: a busy one ends some, and their clients connect again to one that is free.
import type { Server } from 'node:http';
import { prependToRequests } from '../../server/connections.js';

export interface WorkerLoad {
  /** Open connections of the public listener. */
  connections: number;
  /** The busy share of the event loop's time, from 0 to 1. */
  utilization: number;
}

/** Below it a worker has time for more: its connections stay. */
const BUSY = 0.5;

/** A worker that is less busy by this much accepts sooner, so that the connections come to it. */
const FREER = 0.2;

/**
 * How many connections a worker should end. Half of those above the mean: reports come before the last ones have moved.
 * `others`: the other workers.
 */
export function connectionsToEnd(worker: WorkerLoad, others: readonly WorkerLoad[]): number {
  if (worker.utilization < BUSY) return 0;
  if (!others.some(({ utilization }) => utilization <= worker.utilization - FREER)) return 0;
  const all = others.reduce((sum, { connections }) => sum + connections, worker.connections);
  const surplus = Math.floor(worker.connections - all / (others.length + 1));
  return surplus < 1 ? 0 : Math.ceil(surplus / 2);
}

/** Workers report every 400 ms. One that is late accepts nothing, however free it was. */
const LATE_MS = 2000;

/** The workers as they last reported. */
export class PoolBalance {
  readonly #reports = new Map<number, { load: WorkerLoad; at: number }>();

  /** @returns how many connections this worker should end */
  report(worker: number, load: WorkerLoad, now: number): number {
    this.#reports.delete(worker);
    const others = [...this.#reports.values()].filter(({ at }) => now - at < LATE_MS);
    this.#reports.set(worker, { load, at: now });
    return connectionsToEnd(
      load,
      others.map((other) => other.load),
    );
  }

  remove(worker: number): void {
    this.#reports.delete(worker);
  }
}

export interface Balance {
  /** Since the last call. */
  load: () => Promise<WorkerLoad>;
  /** Closes this many connections behind their next response (RFC 9112 §9.6). */
  end: (connections: number) => void;
}

export function createBalance(server: Server): Balance {
  let left = 0;
  let known = performance.eventLoopUtilization();
  prependToRequests(server, (_req, res) => {
    if (left === 0) return;
    left--;
    res.shouldKeepAlive = false;
  });
  return {
    async load() {
      const now = performance.eventLoopUtilization();
      const { utilization } = performance.eventLoopUtilization(now, known);
      known = now;
      return { connections: await countOf(server), utilization };
    },
    end(connections) {
      left = connections;
    },
  };
}

const countOf = (server: Server): Promise<number> =>
  new Promise((resolve) => {
    server.getConnections((_error, count) => {
      resolve(count);
    });
  });
