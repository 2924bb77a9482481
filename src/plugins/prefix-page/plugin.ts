// The public page of a prefix: how often its handles are resolved, and whether they are available and fresh.
import type { Plugin } from '../../plugin.js';
import { type SectionsOf, fixed, list, readPrefixName } from '../../config/fields.js';
import type { Config } from '../../config/schema.js';
import { defineErrors } from '../../errors.js';
import { defineRoutes } from '../../http/route-table.js';

export const ERRORS = defineErrors({
  PREFIX_PAGE_UNKNOWN: { status: 404, responseCode: 2, title: 'This prefix has no page here' },
  PREFIX_PAGE_UNAVAILABLE: { status: 503, responseCode: 2, title: 'The figures in Redis are unavailable' },
});

const SECTIONS = {
  prefixPages: {
    // All are written to Redis in one script.
    prefixes: list({ allowed: 'prefixes such as 21.T11998', read: readPrefixName, max: 100 })
      .default([])
      .describe(
        'Prefixes with a public page at `/prefixes/<prefix>`, at most 100, separated by commas: resolutions of the month, availability, and the share of fresh responses. See "The page of a prefix".',
      ),
    publishEveryMs: fixed(10_000),
  },
};

export type PrefixPagesConfig = Config & SectionsOf<typeof SECTIONS>;

export const prefixPage: Plugin<PrefixPagesConfig> = {
  name: 'prefix page',
  sections: SECTIONS,
  errors: ERRORS,
  isEnabled: ({ prefixPages: { prefixes } }) => prefixes.length > 0,
  // No handle: the prefix of a handle starts with a digit or contains a dot.
  routes: defineRoutes({ interface: 'redirect' }, { 'GET /prefixes/{prefix}': 'readPrefixPage' }),
  load: () => import('./prefix-page.js'),
};
