// The admin listener: probes, metrics, the status page, and calls of the operator.
import type { Plugin } from '../../app/plugin.js';
import { adminRoutes } from './routes.js';

export const admin: Plugin = {
  name: 'admin',
  adminRoutes,
  isEnabled: () => true,
  load: () => import('./admin.js'),
};
