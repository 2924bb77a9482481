// The operator's calls on something that does nothing, for tests of the listener alone.
import type { RequestHandler } from 'express';
import type { Operations } from '../../src/admin/operations.js';
import type { Statistics } from '../../src/admin/statistics.js';
import { routesOfAdmin } from '../../src/compose/routes.js';
import { RouteTable } from '../../src/http/route-table.js';

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

export const adminTable = new RouteTable(routesOfAdmin);

export const noOpenApi: RequestHandler = (_req, _res, next) => {
  next();
};
