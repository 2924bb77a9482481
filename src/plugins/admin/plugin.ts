// The admin listener: probes, metrics, the status page, and calls of the operator.
import type { Plugin } from '../../plugin.js';
import { defineErrors } from '../../errors.js';
import { defineRoutes, type Route } from '../../http/route-table.js';

export const ERRORS = defineErrors({
  ADMIN_BAD_BODY: { status: 400, responseCode: 4, title: 'Invalid admin request body' },
  ADMIN_TOKEN_NEEDED: { status: 401, responseCode: 402, title: 'Admin token required' },
  ADMIN_CROSS_ORIGIN: { status: 403, responseCode: 400, title: 'Cross-origin request rejected' },
});

const adminRoutes = defineRoutes(
  {},
  {
    'GET /healthz': { id: 'health', isRoutine: true },
    'GET /readyz': { id: 'readiness', isRoutine: true },
    'GET /metrics': { id: 'metrics', isRoutine: true },
    'GET /': { id: 'statusPage', isRoutine: true },
    'GET /favicon.ico': { id: 'statusIcon', isRoutine: true },
    'GET /status/{file}': { id: 'statusFile', isRoutine: true },
    'GET /events': { id: 'events', isRoutine: true },
    'GET /stats': { id: 'stats', isRoutine: true },
    'GET /cache': 'inspectCache',
    'POST /purge': 'purge',
    'PUT /log-level': 'setLogLevel',
  },
);

/** Whether the route needs no token, because the probes of an orchestrator cannot send one. */
export const isProbe = ({ id }: Route): boolean => id === 'health' || id === 'readiness';

export type AdminId = (typeof adminRoutes)[number]['id'];

export const admin: Plugin = {
  name: 'admin',
  errors: ERRORS,
  adminRoutes,
  isEnabled: () => true,
  load: () => import('./admin.js'),
};
