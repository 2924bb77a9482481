// The routes of the reverse lookup service.
import { defineRoutes } from '../../http/route-table.js';

export const reverseLookupRoutes = defineRoutes(
  { interface: 'record', handler: 'reverseLookup' },
  {
    'GET /hrls/handles/?': 'lookUpHandles',
    'GET /hrls/handles/{prefix}': 'lookUpHandlesOfPrefix',
    'GET /hrls/ping': 'pingLookup',
    'GET /hrls/{path?}': 'relayToLookup',
  },
);
