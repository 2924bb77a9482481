// The OpenAPI documents of both listeners, as JSON and as a page.
import type { Plugin } from '../../plugin.js';
import { type Interface, defineRoutes } from '../../http/route-table.js';

const documentRoutes = (group: { interface?: Interface }) =>
  defineRoutes(
    { ...group, handler: 'openApi' },
    { 'GET /openapi': 'readDescriptionPage', 'GET /openapi.json': 'readDescription' },
  );

export const openApi: Plugin = {
  name: 'openapi',
  routes: documentRoutes({ interface: 'redirect' }),
  adminRoutes: documentRoutes({}),
  isEnabled: () => true,
  load: () => import('./openapi.js'),
};
