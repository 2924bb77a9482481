// The operator's calls on something that does nothing, for tests of the listener alone.
import type { RequestHandler } from 'express';
import { type Operations, createOperations } from '../../src/admin/operations.js';
import { routesOfAdmin } from '../../src/compose/routes.js';
import { RouteTable } from '../../src/http/route-table.js';

export const noOperations: Operations = createOperations(() => [], Date.now);

export const adminTable = new RouteTable(routesOfAdmin);

export const noOpenApi: RequestHandler = (_req, _res, next) => {
  next();
};
