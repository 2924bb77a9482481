// Many handles in one request, as a streamed JSON array.
import type { Plugin } from '../../plugin.js';
import { defineErrors } from '../../errors.js';
import { defineRoutes } from '../../http/route-table.js';
import { parseParameters } from '../../http/target.js';
import type { MetricEntry } from '../../observe/metric-list.js';

export const ERRORS = defineErrors({
  BATCH_BAD_BODY: { status: 400, responseCode: 4, title: 'Invalid list of handles (batch)' },
  BATCH_WITH_LOGIN: { status: 400, responseCode: 4, title: 'A batch accepts no credentials' },
  BATCH_TOO_LARGE: { status: 413, responseCode: 4, title: 'Too many handles in one request' },
});

export const METRICS = {
  handles: {
    name: 'handle_proxy_batch_handles_total',
    type: 'counter',
    labelNames: ['result'],
    help: 'Handles served in batches, by result (hit, miss, stale, …); `handle_proxy_requests_total` counts each batch as one response.',
    fromStart: ['hit', 'miss', 'stale', 'invalid', 'error'].map((result) => ({ result })),
  },
} as const satisfies Record<string, MetricEntry>;

/** Whether the query of `/api/handles` is a batch. With `prefix` it is a list, as on a Handle server. */
const isBatch = (parameters: URLSearchParams): boolean =>
  parameters.has('handle') && !parameters.has('prefix');

export const batch: Plugin = {
  name: 'batch',
  errors: ERRORS,
  metrics: METRICS,
  isEnabled: () => true,
  routes: defineRoutes(
    { interface: 'batch' },
    {
      'POST /api/resolve/?': { id: 'resolveHandles', handler: 'batchByBody' },
      'GET /api/handles/?': {
        id: 'resolveHandlesByQuery',
        handler: 'batchByQuery',
        when: (_req, { query }) => isBatch(parseParameters(query)),
      },
    },
  ),
  load: () => import('./batch.js'),
};
