// FAIR Signposting: typed links on redirects and record pages, and link sets.
import type { Plugin } from '../../plugin.js';
import { type SectionsOf, list } from '../../config/fields.js';
import type { Config } from '../../config/schema.js';
import { baseUrl } from '../../config/schema-interfaces.js';

const SIGNPOST = /^(\S+)=(type|author|license|describedby|describes|item|collection|profile)$/;

function readSignpost(given: string): [type: string, relation: string] | undefined {
  const [, type, relation] = SIGNPOST.exec(given) ?? [];
  return type === undefined || relation === undefined ? undefined : [type, relation];
}

/**
 * Types from the ePIC Data Type Registry: digitalObjectType, license, digitalObjectLocation, hasMetadata,
 * isMetadataFor and kernelInformationProfile.
 */
const SIGNPOSTS = [
  '21.T11148/1c699a5d1b4ad3ba4956=type',
  '21.T11148/2f314c8fe5fb6a0063a8=license',
  '21.T11148/b8457812905b83046284=item',
  '21.T11148/d0773859091aeb451528=describedby',
  '21.T11148/4fe7cde52629b61e3b82=describes',
  '21.T11148/076759916209e5d62bd5=profile',
].join(',');

const SECTIONS = {
  signposting: {
    publicUrl: baseUrl
      .optional()
      .describe(
        'Public base URL of this proxy, such as `https://pid.example.org`, for the Link headers and link sets of FAIR Signposting. By default, FAIR Signposting is disabled.',
      ),
    types: list({ allowed: 'pairs such as `21.T11148/2f314c8fe5fb6a0063a8=license`', read: readSignpost })
      .prefault(SIGNPOSTS)
      .describe(
        'Comma-separated value types whose URLs or handles become links, each with its relation (`type`, `author`, `license`, `describedby`, `describes`, `item`, `collection` or `profile`), such as `21.T11148/2f314c8fe5fb6a0063a8=license`. The section "FAIR Signposting" explains the default types.',
      ),
  },
};

export type SignpostingConfig = Config & SectionsOf<typeof SECTIONS>;

export const signposting: Plugin<SignpostingConfig> = {
  name: 'signposting',
  sections: SECTIONS,
  isEnabled: ({ redirect, signposting: { publicUrl } }) => redirect.enabled && publicUrl !== undefined,
  load: () => import('./signposting.js'),
};
