// The number of workers: as configured, or one per core, as far as the memory suffices.
import { availableParallelism, totalmem } from 'node:os';
import type { Config } from '../config/schema.js';

/** Code, heap and sockets of a worker beside the caches, which are divided among the workers. */
const WORKER_BYTES = 128 * 1024 ** 2;

export interface Machine {
  cores: number;
  /** Of the machine, or less where a cgroup has a limit. */
  memoryBytes: number;
}

export interface WorkerCount {
  workers: number;
  /** What decided. */
  limitedBy: 'server.workers' | 'cores' | 'memory';
}

export function countWorkers({ server, cache, http }: Config, { cores, memoryBytes }: Machine): WorkerCount {
  if (server.workers > 0) return { workers: server.workers, limitedBy: 'server.workers' };
  const { enabled, maxBytes } = http.hotPath;
  const cacheBytes = cache.maxBytes + (enabled ? maxBytes : 0);
  const fitting = Math.max(1, Math.floor((memoryBytes - cacheBytes) / WORKER_BYTES));
  return fitting < cores ? { workers: fitting, limitedBy: 'memory' } : { workers: cores, limitedBy: 'cores' };
}

/** Without a limit, Node.js reports 0 or more than the machine has. */
export function thisMachine(constrainedBytes = process.constrainedMemory()): Machine {
  const total = totalmem();
  const memoryBytes = constrainedBytes > 0 ? Math.min(constrainedBytes, total) : total;
  return { cores: availableParallelism(), memoryBytes };
}
