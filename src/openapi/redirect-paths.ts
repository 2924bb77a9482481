// What people type into a browser: a handle leads to its object, or shows its record.
import { type Operation, type Parameter, type Paths, content, failures, header, ref, text } from './parts.js';

const query = (name: string, description: string): Parameter => ({
  name,
  in: 'query',
  description,
  schema: text,
});

const page = { 'text/html': { schema: text } };

const redirect: Operation = {
  operationId: 'redirectHandle',
  tags: ['Redirect'],
  summary: 'Go to the object of a handle, or see its record',
  parameters: [
    {
      name: 'handle',
      in: 'path',
      required: true,
      description: 'With or without `hdl:`, `doi:` or the address of a resolver in front.',
      schema: text,
      example: '21.T11998/page',
    },
    query('noredirect', 'Present: show the record.'),
    query('action', '`showvalues`, `showurls` (XML of the places), `api` (JSON) or `redirect`.'),
    query('auth', 'Present: ask the Handle server, not the cache.'),
    query('ignore_aliases', 'Present: do not follow HS_ALIAS.'),
    query('type', 'Only values of this type; may be repeated.'),
    query('index', 'Only the value with this index; may be repeated.'),
    query('urlappend', 'Put behind the address.'),
    query('locatt', 'Choose the 10320/loc location with this attribute, such as `id:1`.'),
    query('country', 'Choose the location for this country.'),
  ],
  responses: {
    200: {
      description: 'The record; no value leads anywhere, or it was asked for',
      content: { ...page, 'text/xml': { schema: text }, 'application/json': { schema: ref('Record') } },
    },
    301: {
      description: 'The handle is an alias',
      headers: { Location: header('The same for its target.') },
      content: page,
    },
    302: { description: 'Here is the object', headers: { Location: header('Its address.') }, content: page },
    304: { description: 'The client has the page already' },
    ...failures(
      [
        'BAD_PATH',
        'REDIRECT_ALIAS_LOOP',
        'METHOD_REFUSED',
        'UPSTREAM_UNREACHABLE',
        'UPSTREAM_RESTING',
        'UPSTREAM_TIMEOUT',
      ],
      { content: { ...page, ...content('application/problem+json', ref('Problem')).content } },
    ),
    default: {
      description: 'Another redirect that a location asks for, or what the Handle server answers by itself',
      content: { ...page, 'application/problem+json': { schema: ref('Problem') } },
    },
  },
};

export const redirectPaths = (): Paths => ({ '/{handle}': { get: redirect } });
