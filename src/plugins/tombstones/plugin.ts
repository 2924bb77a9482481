// Tombstones: a value that says what a handle was makes its redirect 410.
import type { Plugin } from '../../plugin.js';
import { type SectionsOf, text } from '../../config/fields.js';
import type { Config } from '../../config/schema.js';
import { defineErrors } from '../../errors.js';

export const ERRORS = defineErrors({
  REDIRECT_WITHDRAWN: { status: 410, responseCode: 2, title: 'The object of this handle has been withdrawn' },
});

/** Excludes the types that lead somewhere: a handle with such a value is not withdrawn. */
const TYPE = /^(?!(?:URL(?:\..*)?|0\.TYPE\/URL|10320\/.*|HS_.*)$)[\x21-\x7e]{1,200}$/i;

const SECTIONS = {
  tombstones: {
    type: text({ allowed: 'a value type that is no URL, HS_… or 10320/…', pattern: TYPE })
      .optional()
      .describe(
        'Type of the values that say what a withdrawn handle was, such as `TOMBSTONE`. A record with such a value, and without a URL or 10320/loc value, is 410 with a page instead of a redirect. See "Withdrawn handles".',
      ),
  },
};

export type TombstonesConfig = Config & SectionsOf<typeof SECTIONS>;

export const tombstones: Plugin<TombstonesConfig> = {
  name: 'tombstones',
  sections: SECTIONS,
  errors: ERRORS,
  isEnabled: ({ redirect, tombstones: { type } }) => redirect.enabled && type !== undefined,
  load: () => import('./tombstones.js'),
};
