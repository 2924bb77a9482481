// The routes of ePIC v2.
import { defineRoutes } from '../http/route-table.js';

export const v2Routes = defineRoutes(
  { interface: 'v2', handler: 'v2' },
  {
    'GET /api/v2/handles/{prefix}/{suffix}': 'v2Read',
    'PUT /api/v2/handles/{prefix}/{suffix}': 'v2Put',
    'DELETE /api/v2/handles/{prefix}/{suffix}': 'v2Delete',
    'GET /api/v2/handles/{prefix}': 'v2Search',
    'POST /api/v2/handles/{prefix}': 'v2Mint',
    'GET /api/v2/handles/?': 'v2Prefixes',
  },
);

export type V2Id = (typeof v2Routes)[number]['id'];
