// The operator's calls on something that does nothing, for tests of the listener alone.
import type { RequestHandler } from 'express';
import type { Operations } from '../../src/admin/operations.js';
import type { Statistics } from '../../src/admin/statistics.js';
import { routesOfAdmin } from '../../src/compose/routes.js';
import { RouteTable } from '../../src/http/route-table.js';

const unused = (): never => {
  throw new Error('not used by this test');
};

export const noOperations: Operations = {
  purge: unused,
  inspect: () => Promise.resolve([]),
  stats: () => ({}) as Statistics,
  traffic: () => ({ rules: [], networks: [], agents: [], blocked: [] }),
  unblock: unused,
  setLogLevel: unused,
  importLines: unused,
  exportRecords: unused,
};

export const adminTable = new RouteTable(routesOfAdmin);

export const noOpenApi: RequestHandler = (_req, _res, next) => {
  next();
};
