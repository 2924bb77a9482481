// The admin listener: probes, metrics, the status page, and calls of the operator.
import type { Plugin } from '../../app/plugin.js';
import { defineErrors } from '../../errors.js';
import { adminRoutes } from './routes.js';

export const ERRORS = defineErrors({
  ADMIN_BAD_BODY: { status: 400, responseCode: 4, title: 'Invalid admin request body' },
  ADMIN_TOKEN_NEEDED: { status: 401, responseCode: 402, title: 'Admin token required' },
  ADMIN_CROSS_ORIGIN: {
    status: 403,
    responseCode: 400,
    title: 'Cross-origin request rejected',
  },
});

export const admin: Plugin = {
  name: 'admin',
  errors: ERRORS,
  adminRoutes,
  isEnabled: () => true,
  load: () => import('./admin.js'),
};
