// The routes of the admin listener, besides those of other plugins.
import { type Route, defineRoutes } from '../../http/route-table.js';

/** Need no token, because the probes of an orchestrator cannot send one. */
const probeRoutes = defineRoutes(
  {},
  {
    'GET /healthz': { id: 'health', isRoutine: true },
    'GET /readyz': { id: 'readiness', isRoutine: true },
  },
);

const PROBES: ReadonlySet<string> = new Set(probeRoutes.map(({ id }) => id));

/** Whether the route needs no token. */
export const isProbe = ({ id }: Route): boolean => PROBES.has(id);

const operatorRoutes = defineRoutes(
  {},
  {
    'GET /metrics': { id: 'metrics', isRoutine: true },
    'GET /': { id: 'statusPage', isRoutine: true },
    'GET /status/{file}': { id: 'statusFile', isRoutine: true },
    'GET /events': { id: 'events', isRoutine: true },
    'GET /stats': { id: 'stats', isRoutine: true },
    'GET /cache': 'inspectCache',
    'POST /purge': 'purge',
    'PUT /log-level': 'setLogLevel',
  },
);

export const adminRoutes = [...probeRoutes, ...operatorRoutes];

export type AdminId = (typeof adminRoutes)[number]['id'];
