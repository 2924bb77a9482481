// The batch routes, which read many handles in one request.
import { readParameters } from '../../http/target.js';
import { defineRoutes } from '../../http/route-table.js';

/** Whether the query of `/api/handles` is a batch. With `prefix` it is a list, as on a Handle server. */
const isBatch = (parameters: URLSearchParams): boolean =>
  parameters.has('handle') && !parameters.has('prefix');

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
