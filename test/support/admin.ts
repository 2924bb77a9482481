// The admin listener alone, whose calls do nothing.
import type { RequestListener } from 'node:http';
import { type AdminDeps, createAdminApp } from '../../src/admin/app.js';
import type { Operations } from '../../src/admin/operations.js';
import type { Statistics } from '../../src/admin/statistics.js';
import { createTokenCheck } from '../../src/admin/token.js';
import { routesOfAdmin } from '../../src/compose/routes.js';
import { isLoopback } from '../../src/config/addresses.js';
import { guard } from '../../src/http/guard.js';
import { RouteTable } from '../../src/http/route-table.js';
import { createReadiness } from '../../src/observe/health.js';
import { createMetrics } from '../../src/observe/metrics.js';

const unused = (): never => {
  throw new Error('not used by this test');
};

const NO_READS = { latency: { count: 0, buckets: [] } };

export const noOperations: Operations = {
  purge: unused,
  inspect: () => Promise.resolve([]),
  stats: () => Promise.resolve({ requests: NO_READS, upstream: NO_READS } as unknown as Statistics),
  traffic: () => Promise.resolve({ rules: [], networks: [], agents: [], blocked: [] }),
  unblock: unused,
  setLogLevel: unused,
  importLines: unused,
  exportRecords: unused,
};

/** Without a token, unless the check of one is given. */
export const createAdminAlone = (deps: Partial<AdminDeps> = {}): RequestListener =>
  guard(
    createAdminApp({
      table: new RouteTable(routesOfAdmin),
      openApi: (_req, _res, next) => {
        next();
      },
      tokenCheck: createTokenCheck({ token: undefined, isLoopback }),
      metrics: createMetrics(),
      readiness: createReadiness(),
      heldMs: () => undefined,
      operations: noOperations,
      ...deps,
    }),
    (error) => deps.onUnexpected?.(error),
  );
