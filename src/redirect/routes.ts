// Defines the browser routes: redirects, record pages, the front page and site files.
import { z } from 'zod';
import { PROBLEM, optionalText, pathText } from '../http/schemas.js';
import { type Content, defineRoutes } from '../http/route-table.js';
import { LINKSET_JSON, LINKSET_TEXT } from './link-sets.js';
import { record } from '../http/record-schemas.js';

const text = z.string();
const page: Content = { 'text/html': text };
const pageOrProblem = { ...page, ...PROBLEM };

const query = z.object({
  noredirect: optionalText('If present, the record is shown instead of a redirect.'),
  action: optionalText(
    'What to return: `redirect` (default), `showvalues` (the record), `showurls` (its locations as XML), `linkset` (RFC 9264, requires `signposting.publicUrl`), or `api` (the response of `GET /api/handles/{handle}`). `metadata` redirects to a location for metadata.',
  ),
  format: optionalText('Format of the link set: `json` or `text`. By default, `Accept` selects it.'),
  auth: optionalText('If present, the record is read from the Handle server instead of the cache.'),
  ignore_aliases: optionalText('If present, HS_ALIAS values are not followed.'),
  type: optionalText('Use only the values of this type; may be repeated.'),
  index: optionalText('Use only the value with this index; may be repeated.'),
  urlappend: optionalText('Text to append to the target URL.'),
  locatt: optionalText('Attribute of the 10320/loc location to select, such as `id:1`; may be repeated.'),
  country: optionalText('Country code for selecting a location, instead of the country of the client.'),
});

const responses = {
  200: {
    description: 'The record, if it has no target or was requested',
    headers: { Link: 'Typed links (FAIR Signposting), if `signposting.publicUrl` is set.' },
    content: {
      ...page,
      'text/xml': text,
      'application/json': record,
      [LINKSET_JSON]: z.object({ linkset: z.array(z.looseObject({ anchor: text })) }),
      [LINKSET_TEXT]: text,
    },
  },
  301: {
    description: 'Redirect to the handle that this alias refers to',
    headers: { Location: 'Path of the last handle in a chain of aliases, on this proxy.' },
    content: page,
  },
  302: { description: 'Redirect to the target', headers: { Location: 'URL of the target.' }, content: page },
  304: 'Not modified',
  default: {
    description: 'Redirect with a status set by a location, or another response of the Handle server',
    content: pageOrProblem,
  },
};

const ERRORS = [
  'REDIRECT_NOT_FOUND',
  'REDIRECT_NOT_SERVED',
  'REDIRECT_ALIAS_LOOP',
  'UPSTREAM_UNREACHABLE',
  'UPSTREAM_BACKOFF',
  'UPSTREAM_TIMEOUT',
] as const;

const FORM = 'application/x-www-form-urlencoded';

const file = (type: string) => ({
  200: { description: 'The file', content: { [type]: text } },
  304: 'Not modified',
});

export const redirectRoutes = defineRoutes(
  {
    interface: 'redirect',
    tag: { name: 'Redirect', description: 'Redirects and pages for browsers.' },
    parameters: z.object({
      handle: pathText(
        'The handle, optionally after `hdl:`, `doi:` or the URL of a resolver.',
        '21.T11998/page',
      ),
    }),
    errors: ['BAD_PATH', 'METHOD_NOT_ALLOWED'],
    errorContent: pageOrProblem,
  },
  {
    'GET /': {
      id: 'lookUp',
      handler: 'redirect',
      summary: 'Show the lookup form, or redirect to the handle that was entered',
      query: z.object({
        hdl: z.string().optional().meta({ description: 'The handle to look up.', example: '21.T11998/page' }),
      }),
      responses: {
        200: { description: 'The lookup form', content: page },
        302: {
          description: 'Redirect to the handle',
          headers: { Location: 'Path of the handle on this proxy.' },
        },
        304: 'Not modified',
      },
    },
    'POST /': {
      id: 'postToFrontPage',
      handler: 'redirect',
      summary: 'Look up a handle from a form, as on HDLProxy',
      body: {
        description: 'The handle and the query parameters of its GET, as a form',
        content: { [FORM]: z.object({ hdl: text.optional(), noredirect: text.optional() }) },
        example: { hdl: '21.T11998/page' },
      },
      responses,
      errors: [...ERRORS, 'BODY_TOO_LARGE'],
    },
    'GET /{handle}': {
      id: 'redirectHandle',
      handler: 'redirect',
      admitsMisses: true,
      summary: 'Redirect to the target of a handle, or show its record',
      query,
      responses,
      errors: ERRORS,
    },
    'POST /{handle}': {
      id: 'redirectHandleByPost',
      handler: 'redirect',
      summary: 'Redirect to the target of a handle, or show its record, with parameters in a form',
      description: 'An alias redirects to the target instead of the last handle.',
      query,
      body: {
        description: 'Query parameters, as a form',
        isOptional: true,
        content: { [FORM]: z.object({ noredirect: text.optional() }) },
        example: { noredirect: 'on' },
      },
      responses,
      errors: [...ERRORS, 'BODY_TOO_LARGE'],
    },
    'GET /robots.txt': {
      id: 'robots',
      handler: 'robots',
      summary: 'Read the rules for crawlers',
      responses: file('text/plain'),
    },
    'GET /favicon.ico': {
      id: 'icon',
      handler: 'icon',
      summary: 'Read the icon',
      responses: file('image/svg+xml'),
    },
  },
);
