// The redirects and record pages.
import { type Operation, type Paths, PROBLEM, failures, header, inPath, query, ref, text } from './parts.js';

const page = { 'text/html': { schema: text } };
const pageOrProblem = { content: { ...page, ...PROBLEM.content } };

const redirect: Operation = {
  operationId: 'redirectHandle',
  tags: ['Redirect'],
  summary: 'Redirect to the target of a handle, or show its record',
  parameters: [
    inPath('handle', 'With or without `hdl:`, `doi:` or the URL of a resolver before it.', '21.T11998/page'),
    query('noredirect', 'Present: show the record.'),
    query('action', '`showvalues`, `showurls` (XML of the locations), `api` (JSON) or `redirect`.'),
    query('auth', 'Present: read from the Handle server, not from the cache.'),
    query('ignore_aliases', 'Present: do not follow HS_ALIAS.'),
    query('type', 'Only values of this type; may be repeated.'),
    query('index', 'Only the value with this index; may be repeated.'),
    query('urlappend', 'Text to append to the URL.'),
    query('locatt', 'Choose the 10320/loc location with this attribute, such as `id:1`.'),
    query('country', 'Choose the location for this country.'),
  ],
  responses: {
    200: {
      description: 'The record: it has no target, or the record was requested',
      content: { ...page, 'text/xml': { schema: text }, 'application/json': { schema: ref('Record') } },
    },
    301: {
      description: 'The handle is an alias',
      headers: { Location: header('The URL of the last handle on this proxy.') },
      content: page,
    },
    302: { description: 'The target', headers: { Location: header('Its URL.') }, content: page },
    304: { description: 'Not modified' },
    ...failures(
      [
        'BAD_PATH',
        'REDIRECT_ALIAS_LOOP',
        'METHOD_REFUSED',
        'UPSTREAM_UNREACHABLE',
        'UPSTREAM_RESTING',
        'UPSTREAM_TIMEOUT',
      ],
      pageOrProblem,
    ),
    default: {
      description: 'A redirect with the status of a location, or another response of the Handle server',
      ...pageOrProblem,
    },
  },
};

export const redirectPaths = (): Paths => ({ '/{handle}': { get: redirect } });
