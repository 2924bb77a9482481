// How many workers start, by cores and memory.
import { availableParallelism, totalmem } from 'node:os';
import { expect, test } from 'vitest';
import { countWorkers, thisMachine } from '../../src/process/worker-count.js';
import { configFrom } from '../support/load-config.js';

const MIB = 1024 ** 2;
const GIB = 1024 * MIB;

/** By default the caches may take 384 MiB. */
test.each<
  [env: Record<string, string>, cores: number, memoryBytes: number, workers: number, limitedBy: string]
>([
  [{}, 16, 64 * GIB, 16, 'cores'],
  [{}, 2, 64 * GIB, 2, 'cores'],
  [{}, 16, GIB, 5, 'memory'],
  [{}, 5, GIB, 5, 'cores'],
  [{}, 16, (384 + 256) * MIB - 1, 1, 'memory'],
  [{}, 16, (384 + 256) * MIB, 2, 'memory'],
  [{}, 16, 128 * MIB, 1, 'memory'],
  [{}, 1, 128 * MIB, 1, 'cores'],
  [{ CACHE_MAX_BYTES: '64MiB' }, 16, GIB, 6, 'memory'],
  [{ HTTP_HOT_PATH_ENABLED: 'false' }, 16, GIB, 6, 'memory'],
  [{ SERVER_WORKERS: '16' }, 2, GIB, 16, 'server.workers'],
])('%o with %i cores and %i bytes: %i workers by %s', (env, cores, memoryBytes, workers, limitedBy) => {
  expect(countWorkers(configFrom({ env }), { cores, memoryBytes })).toEqual({ workers, limitedBy });
});

test.each([
  [0, totalmem()],
  [2 ** 64, totalmem()],
  [64 * MIB, 64 * MIB],
])('a limit of %i bytes on this machine leaves %i', (limit, memoryBytes) => {
  expect(thisMachine(limit)).toEqual({ cores: availableParallelism(), memoryBytes });
});
