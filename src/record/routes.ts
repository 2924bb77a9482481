// The routes of the record interface, and of the other endpoints of a Handle server.
import { defineRoutes } from '../http/route-table.js';

export const recordRoutes = defineRoutes(
  { interface: 'record' },
  {
    'GET /api/handles/{handle}': { id: 'resolveHandle', handler: 'read', admitsMisses: true },
    'PUT /api/handles/{handle}': { id: 'writeHandle', handler: 'write' },
    // POST is a read on a Handle server, but a cache must write it through (RFC 9111 §4).
    'POST /api/handles/{handle}': { id: 'resolveHandleByPost', handler: 'forwardRead' },
    'DELETE /api/handles/{handle}': { id: 'deleteHandle', handler: 'write' },
    'GET /api/handles/?': { id: 'listHandles', interface: 'list', handler: 'list' },
    // Without a handle (recordings "empty handle: …").
    'PUT /api/handles/?': { id: 'writeWithoutHandle', handler: 'forward' },
    'POST /api/handles/?': { id: 'resolveWithoutHandle', handler: 'forward' },
    'DELETE /api/handles/?': { id: 'deleteWithoutHandle', handler: 'forward' },
  },
);

export const endpointRoutes = defineRoutes(
  { interface: 'record', handler: 'forward' },
  {
    'POST /api/sessions/*': 'openSession',
    // No other GET, which a Handle server refuses as well (403): a session id in a path would reach a log, or another server.
    'GET /api/sessions/this': 'readSession',
    'PUT /api/sessions/this': 'logIn',
    'POST /api/sessions/this': 'logInByPost',
    'DELETE /api/sessions/this': 'endSession',
    'GET /api/site/*': 'readSite',
    'POST /api/site/*': 'readSiteByPost',
    'GET /api/prefixes/?': 'listPrefixes',
    'POST /api/prefixes/?': 'homePrefixes',
    'DELETE /api/prefixes/?': 'unhomePrefixes',
    'POST /api/prefixes/{prefix}': 'homePrefix',
    'DELETE /api/prefixes/{prefix}': 'unhomePrefix',
    'GET /api/verifications/{key?}': 'verify',
    'POST /api/verifications/{key?}': 'verifyByPost',
  },
);
