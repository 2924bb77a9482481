// A service that finds handles by their values: its routes are forwarded to it, and searches of ePIC v2 ask it.
import type { Plugin } from '../../plugin.js';
import { readOrigin } from '../../config/addresses.js';
import { type SectionsOf, flag, normalised } from '../../config/fields.js';
import type { Config } from '../../config/schema.js';
import { defineRoutes } from '../../http/route-table.js';
import { PUBLIC_TRUST } from '../../upstream/failure.js';

const SECTIONS = {
  reverseLookup: {
    url: normalised({
      allowed: 'an http:// or https:// address with neither path, query nor credentials',
      read: readOrigin,
    })
      .optional()
      .describe('Address of the reverse lookup service for `/hrls/handles`, which is 404 without it.'),
    forwardLogin: flag(false).describe(
      "Whether an ePIC v2 search sends the caller's login to the reverse lookup service; set it only if that service accepts the Handle server's logins.",
    ),
  },
};

export type ReverseLookupConfig = Config & SectionsOf<typeof SECTIONS>;

export const KEYS = { ...PUBLIC_TRUST, url: 'reverseLookup.url' };

export const reverseLookup: Plugin<ReverseLookupConfig> = {
  name: 'reverse lookup',
  sections: SECTIONS,
  isEnabled: ({ reverseLookup: { url } }) => url !== undefined,
  routes: defineRoutes(
    { interface: 'record', handler: 'reverseLookup' },
    {
      'GET /hrls/handles/?': 'lookUpHandles',
      'GET /hrls/handles/{prefix}': 'lookUpHandlesOfPrefix',
      'GET /hrls/ping': 'pingLookup',
      'GET /hrls/{path?}': 'relayToLookup',
    },
  ),
  // Searches and forwarded requests have separate connections.
  servers: ({ reverseLookup: { url }, upstream: { connections } }) =>
    url === undefined ? [] : [{ name: 'reverse lookup', url, keys: KEYS, connections: 2 * connections }],
  load: () => import('./reverse-lookup.js'),
};
