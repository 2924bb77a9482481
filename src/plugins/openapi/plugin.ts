// The OpenAPI documents of both listeners, as JSON and as a page.
import type { Plugin } from '../../app/plugin.js';
import { type Interface, defineRoutes } from '../../http/route-table.js';

const routesOf = (group: { interface?: Interface }) =>
  defineRoutes(
    { ...group, handler: 'openApi' },
    { 'GET /openapi': 'readDescriptionPage', 'GET /openapi.json': 'readDescription' },
  );

export const openApiRoutes = routesOf({ interface: 'redirect' });

export const openApi: Plugin = {
  name: 'openapi',
  routes: () => openApiRoutes,
  adminRoutes: routesOf({}),
  isEnabled: () => true,
  load: () => import('./openapi.js'),
};
