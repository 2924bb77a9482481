// The batch routes, which read many handles in one request.
import { readParameters } from '../../http/query.js';
import { defineRoutes } from '../../http/route-table.js';
import { isBatch } from './request.js';

export const batchRoutes = defineRoutes(
  { interface: 'batch' },
  {
    'POST /api/resolve/?': { id: 'resolveHandles', handler: 'batchByBody' },
    'GET /api/handles/?': {
      id: 'resolveHandlesByQuery',
      handler: 'batchByQuery',
      when: (_req, { query }) => isBatch(readParameters(query)),
    },
  },
);
