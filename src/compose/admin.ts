// Creates the admin listener.
import type { RequestListener } from 'node:http';
import { type AdminDeps, createAdminApp } from '../admin/app.js';
import { createTokenCheck } from '../admin/token.js';
import { isLoopback } from '../config/addresses.js';
import { guard } from '../http/guard.js';
import { RouteTable } from '../http/route-table.js';
import { makeAdminOpenApi } from './openapi.js';
import { routesOfAdmin } from './routes.js';
import type { SharedDeps } from './shared-deps.js';

export function makeAdmin(
  { config, logger, metrics }: SharedDeps,
  deps: Pick<AdminDeps, 'readiness' | 'heldMs' | 'operations'>,
): RequestListener {
  const onUnexpected = (error: unknown): void => {
    logger.error({ err: error }, 'unexpected error on the admin listener');
    metrics.countInternalError();
  };
  const app = createAdminApp({
    ...deps,
    metrics,
    table: new RouteTable(routesOfAdmin),
    openApi: makeAdminOpenApi(config, routesOfAdmin),
    tokenCheck: createTokenCheck({ token: config.admin.token, isLoopback }),
    onCall(call, isRoutine) {
      logger[isRoutine ? 'debug' : 'info'](call, 'admin call');
    },
    onUnexpected,
  });
  return guard(app, onUnexpected);
}
