// Defines the browser routes: redirects, record pages, the front page and site files.
import { z } from 'zod';
import { PROBLEM, optionalText, pathText } from '../http/schemas.js';
import { type Content, defineRoutes } from '../http/route-table.js';
import { LINKSET_JSON, LINKSET_TEXT } from './signposting.js';
import { record } from '../record/schemas.js';

const text = z.string();
const page: Content = { 'text/html': text };
const pageOrProblem = { ...page, ...PROBLEM };

const query = z.object({
  noredirect: optionalText('Present: show the record.'),
  action: optionalText(
    '`showvalues`, `showurls` (XML of the locations), `linkset` (RFC 9264, with `signposting.publicUrl`), `api` (JSON) or `redirect`.',
  ),
  format: optionalText('Format of the link set, `json` or `text`; by default that of Accept.'),
  auth: optionalText('Present: read from the Handle server, not from the cache.'),
  ignore_aliases: optionalText('Present: do not follow HS_ALIAS.'),
  type: optionalText('Only values of this type; may be repeated.'),
  index: optionalText('Only the value with this index; may be repeated.'),
  urlappend: optionalText('Text to append to the URL.'),
  locatt: optionalText('Choose the 10320/loc location with this attribute, such as `id:1`.'),
  country: optionalText('Choose the location for this country.'),
});

const responses = {
  200: {
    description: 'The record: it has no target, or the record was requested',
    headers: { Link: 'FAIR Signposting, with `signposting.publicUrl`.' },
    content: {
      ...page,
      'text/xml': text,
      'application/json': record,
      [LINKSET_JSON]: z.object({ linkset: z.array(z.looseObject({ anchor: text })) }),
      [LINKSET_TEXT]: text,
    },
  },
  301: {
    description: 'The handle is an alias',
    headers: { Location: 'The URL of the last handle on this proxy.' },
    content: page,
  },
  302: { description: 'The target', headers: { Location: 'Its URL.' }, content: page },
  304: 'Not modified',
  default: {
    description: 'A redirect with the status of a location, or another response of the Handle server',
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
        'With or without `hdl:`, `doi:` or the URL of a resolver before it.',
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
      summary: 'The form for a handle, or what was typed into it',
      query: z.object({
        hdl: z.string().optional().meta({ description: 'The handle.', example: '21.T11998/page' }),
      }),
      responses: {
        200: { description: 'The form', content: page },
        302: { description: 'The path of the handle', headers: { Location: 'On this proxy.' } },
        304: 'Not modified',
      },
    },
    'POST /': {
      id: 'postToFrontPage',
      handler: 'redirect',
      summary: 'Look up a handle, as with the form of HDLProxy',
      body: {
        description: 'The handle, and parameters of its GET',
        content: { [FORM]: z.object({ hdl: text.optional(), noredirect: text.optional() }) },
        example: { hdl: '21.T11998/page' },
      },
      responses,
      errors: [...ERRORS, 'BODY_TOO_LARGE'],
    },
    'GET /{handle}': {
      id: 'redirectHandle',
      handler: 'redirect',
      summary: 'Redirect to the target of a handle, or show its record',
      query,
      responses,
      errors: ERRORS,
    },
    'POST /{handle}': {
      id: 'redirectHandleByPost',
      handler: 'redirect',
      summary: 'The same, with parameters in a form',
      description: 'Aliases are followed directly to the target.',
      query,
      body: {
        description: 'Parameters of the query',
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
      summary: 'The rules for crawlers',
      responses: file('text/plain'),
    },
    'GET /favicon.ico': {
      id: 'icon',
      handler: 'icon',
      summary: 'The icon',
      responses: file('image/svg+xml'),
    },
  },
);
