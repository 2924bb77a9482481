// Repositories as servers of their prefixes: DSpace, and landing pages whose URL contains the handle.
import type { Plugin } from '../../plugin.js';
import { readBaseUrl } from '../../config/addresses.js';
import type { Config } from '../../config/schema.js';
import type { Rule } from '../../config/fields.js';
import { defineErrors } from '../../errors.js';

export const ERRORS = defineErrors({
  REPOSITORY_MINTS: {
    status: 405,
    responseCode: 7,
    title: 'Handles of this prefix can only be read here: the repository mints and changes them',
  },
});

function repositoryRule({ kind, url, secondaries }: Config['upstreams'][number], at: number): Rule[] {
  const key = `upstreams.${at}.url`;
  if (url === undefined) return [];
  if (kind === 'dspace') {
    const isBase = [url, ...secondaries].every(
      (each) => readBaseUrl(each) !== undefined && !/[{}]/.test(each),
    );
    const remedy = 'give the address of its backend, such as https://repository.example.org/server';
    return [[!isBase, key, remedy]];
  }
  if (kind === 'template') {
    const isTemplate = /\{(?:handle|suffix)\}/.test(url) && secondaries.length === 0;
    return [[!isTemplate, key, 'give an address with {handle} or {suffix}, and no secondaries']];
  }
  return [];
}

const KINDS: readonly string[] = ['dspace', 'template'];

export const repositories: Plugin = {
  name: 'repositories',
  errors: ERRORS,
  serverKinds: KINDS,
  rules: ({ upstreams }) => upstreams.flatMap(repositoryRule),
  isEnabled: ({ upstreams }) => upstreams.some(({ kind }) => KINDS.includes(kind)),
  load: () => import('./repositories.js'),
};
