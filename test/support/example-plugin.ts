// Logs reads of handles that do not exist.
import type { Plugin } from '../../src/plugin.js';
import { type SectionsOf, flag } from '../../src/config/fields.js';
import type { Config } from '../../src/config/schema.js';

const SECTIONS = { unknown: { log: flag(false).describe('Whether to log reads of unknown handles.') } };

export const unknown: Plugin<Config & SectionsOf<typeof SECTIONS>> = {
  name: 'unknown',
  sections: SECTIONS,
  isEnabled: ({ unknown: { log } }) => log,
  load: () =>
    Promise.resolve({
      start: ({ log }) => ({
        answered({ handle, exists }) {
          if (!exists) log.info({ handle: handle.text }, 'unknown handle');
        },
      }),
    }),
};
