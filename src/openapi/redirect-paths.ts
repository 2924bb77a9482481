// The redirects and record pages, and native messages over HTTP.
import {
  type Operation,
  type Parameter,
  type Paths,
  type ResponseObject,
  PROBLEM,
  documentCall,
  documentPageCall,
  failures,
  header,
  inPath,
  object,
  query,
  ref,
  text,
} from './parts.js';

const page = { 'text/html': { schema: text } };
const pageOrProblem = { content: { ...page, ...PROBLEM.content } };

const handle = inPath(
  'handle',
  'With or without `hdl:`, `doi:` or the URL of a resolver before it.',
  '21.T11998/page',
);

const parameters: Parameter[] = [
  query('noredirect', 'Present: show the record.'),
  query('action', '`showvalues`, `showurls` (XML of the locations), `api` (JSON) or `redirect`.'),
  query('auth', 'Present: read from the Handle server, not from the cache.'),
  query('ignore_aliases', 'Present: do not follow HS_ALIAS.'),
  query('type', 'Only values of this type; may be repeated.'),
  query('index', 'Only the value with this index; may be repeated.'),
  query('urlappend', 'Text to append to the URL.'),
  query('locatt', 'Choose the 10320/loc location with this attribute, such as `id:1`.'),
  query('country', 'Choose the location for this country.'),
];

const responses: Record<string, ResponseObject> = {
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
      'REDIRECT_NOT_FOUND',
      'REDIRECT_NOT_SERVED',
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
};

const TAG = 'Redirect';
const DESCRIPTION_TAG = 'Description';

const redirect: Operation = {
  operationId: 'redirectHandle',
  tags: [TAG],
  summary: 'Redirect to the target of a handle, or show its record',
  parameters: [handle, ...parameters],
  responses,
};

const FORM = 'application/x-www-form-urlencoded';
const form = {
  [FORM]: { schema: object({ 'hdl?': text, 'noredirect?': text }), example: { hdl: '21.T11998/page' } },
};

const formResponses = { ...responses, ...failures(['BODY_TOO_LARGE'], pageOrProblem) };

const redirectByPost: Operation = {
  operationId: 'redirectHandleByPost',
  tags: [TAG],
  summary: 'The same, with parameters in a form',
  description: 'Aliases are followed to the target at once.',
  parameters: [handle, ...parameters],
  requestBody: {
    description: 'Parameters of the query',
    required: false,
    content: { [FORM]: { schema: object({ 'noredirect?': text }), example: { noredirect: 'on' } } },
  },
  responses: formResponses,
};

const frontPage: Operation = {
  operationId: 'lookUp',
  tags: [TAG],
  summary: 'The form for a handle, or what was typed into it',
  parameters: [{ ...query('hdl', 'The handle.'), example: '21.T11998/page' }],
  responses: {
    200: { description: 'The form', content: page },
    302: { description: 'The path of the handle', headers: { Location: header('On this proxy.') } },
    304: { description: 'Not modified' },
    ...failures(['BAD_PATH', 'METHOD_REFUSED'], pageOrProblem),
  },
};

const formPost: Operation = {
  operationId: 'postToFrontPage',
  tags: [TAG],
  summary: 'Look up a handle, as with the form of HDLProxy',
  requestBody: { description: 'The handle, and parameters of its GET', required: true, content: form },
  responses: formResponses,
};

const MESSAGE = 'application/x-hdl-message';
const message = { [MESSAGE]: { schema: { ...text, contentMediaType: MESSAGE } } };

const messagePost: Operation = {
  operationId: 'sendMessage',
  tags: ['Native protocol'],
  summary: 'Send a native message',
  description: `It needs \`${MESSAGE}\` in \`Content-Type\` and \`Accept\`, and is answered at every path outside the APIs.`,
  requestBody: { description: 'A message with its envelope', required: true, content: message },
  responses: {
    200: { description: 'A message with its envelope, for errors too', content: message },
    ...failures(['BODY_TOO_LARGE'], {}),
  },
};

/** Two calls by their Content-Type. */
const formOrMessagePost: Operation = {
  ...formPost,
  tags: [...formPost.tags, ...messagePost.tags],
  summary: `${formPost.summary}; or send a native message`,
  description: `The message: ${messagePost.description ?? ''}`,
  requestBody: { description: 'By its Content-Type', required: true, content: { ...form, ...message } },
  responses: {
    ...responses,
    ...messagePost.responses,
    200: { description: 'The record, or a message', content: { ...responses[200]?.content, ...message } },
  },
};

function frontCalls({ redirect: hasForm, tunnel }: Interfaces): Paths {
  if (!hasForm) return tunnel ? { '/': { post: messagePost } } : {};
  return { '/': { get: frontPage, post: tunnel ? formOrMessagePost : formPost } };
}

interface Interfaces {
  redirect: boolean;
  tunnel: boolean;
}

export const redirectPaths = (has: Interfaces): Paths => ({
  ...frontCalls(has),
  ...(has.redirect && { '/{handle}': { get: redirect, post: redirectByPost } }),
  '/openapi': documentPageCall(DESCRIPTION_TAG),
  '/openapi.json': documentCall(DESCRIPTION_TAG),
});
