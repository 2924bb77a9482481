// Pages for browsers: the lookup form, the record page and error pages.
import type { Plugin } from '../../plugin.js';

export const pages: Plugin = {
  name: 'pages',
  isEnabled: ({ redirect }) => redirect.enabled,
  load: () => import('./site.js'),
};
