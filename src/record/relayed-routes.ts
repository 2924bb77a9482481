// The relayed routes: Handle server endpoints other than records, and the reverse lookup service.
import { z } from 'zod';
import type { ErrorCode } from '../errors.js';
import { anyObject, json, optionalText, pathText } from '../http/schemas.js';
import { type ResponseDescription, defineRoutes } from '../http/route-table.js';
import { LOGIN_NEEDED, LOGINS } from './routes.js';
import { prefixList, recordError, session, sessionLogin, site } from './schemas.js';

const RELAY_ERRORS: readonly ErrorCode[] = [
  'BAD_PATH',
  'METHOD_NOT_ALLOWED',
  'JSONP_WITH_LOGIN',
  'TRAFFIC_REFUSED',
  'RATE_LIMITED',
  'UPSTREAM_INVALID_RESPONSE',
  'UPSTREAM_UNREACHABLE',
  'UPSTREAM_CONNECT_FAILED',
  'OVERLOADED',
  'UPSTREAM_TIMEOUT',
];
const RELAYED = json('Another response of the server, as it came', recordError);

const loginBody = (example: Record<string, string>) => ({
  description: 'The same may stand in `Authorization: Handle`',
  isOptional: true,
  content: { 'application/json': sessionLogin },
  example,
});

const ofSession = {
  401: json('The login is wrong', session),
  403: 'No such session, or not over https; without a body',
};

const answerChallenge = <const Id extends string>(id: Id) => ({
  id,
  summary: 'Answer the challenge of a session',
  body: loginBody({ sessionId: 'node0abc', id: '300:21.T11998/USER01', type: 'HS_SECKEY' }),
  responses: { 200: json('Logged in', session), ...ofSession },
});

const readSite = <const Id extends string>(id: Id) => ({
  id,
  summary: 'Read the site record of the Handle server',
  responses: { 200: json('The site', site) },
  security: ['none'] as const,
});

const done = { 200: json('Done', recordError), 401: LOGIN_NEEDED };

const homePrefix = <const Id extends string>(id: Id) => ({
  id,
  summary: 'Make the Handle server responsible for a prefix',
  responses: done,
});

const unhomePrefix = <const Id extends string>(id: Id) => ({
  id,
  summary: 'End the responsibility of the Handle server for a prefix',
  responses: done,
});

const verify = <const Id extends string>(id: Id) => ({
  id,
  summary: 'Verify a signature that was made with an HS_SECKEY; other servers call it',
  query: z.object({
    nonce: optionalText('What was signed, in base64.'),
    cnonce: optionalText('What was signed too, in base64.'),
    alg: optionalText('The algorithm, such as `SHA-1`.'),
    signature: optionalText('In base64.'),
  }),
  responses: { 200: json('`isValid` says whether the signature is right', anyObject), 401: LOGIN_NEEDED },
  security: ['none'] as const,
});

export const endpointRoutes = defineRoutes(
  {
    interface: 'record',
    tag: {
      name: 'Handle server',
      description: 'Other calls of a Handle server, relayed and never cached. HDLProxy has none of them.',
    },
    handler: 'passThrough',
    parameters: z.object({
      prefix: pathText('The prefix handle.', '0.NA/21.T11998'),
      key: pathText('Index and handle of the HS_SECKEY.', '300:21.T11998/USER01'),
    }),
    errors: RELAY_ERRORS,
    errorContent: { 'application/json': recordError },
    responses: { default: RELAYED },
    security: LOGINS,
  },
  {
    'POST /api/sessions/*': {
      id: 'openSession',
      summary: 'Open a session',
      description: 'With Basic it is logged in at once. `cnonce` asks the server to prove itself.',
      body: loginBody({ cnonce: 'bm9uY2U=' }),
      responses: {
        201: { ...json('The session', session), headers: { Location: '`/api/sessions/this`' } },
        ...ofSession,
      },
      security: ['none', ...LOGINS],
    },
    'GET /api/sessions/this': {
      id: 'readSession',
      summary: 'Read the session of the header Authorization',
      responses: {
        200: json('The session, or `{"authenticated":false}` without one', session),
        ...ofSession,
      },
      security: ['none', ...LOGINS],
    },
    'PUT /api/sessions/this': answerChallenge('logIn'),
    'POST /api/sessions/this': answerChallenge('logInByPost'),
    'DELETE /api/sessions/this': {
      id: 'endSession',
      summary: 'End a session',
      responses: { 204: 'Ended', ...ofSession },
    },
    'GET /api/site/*': readSite('readSite'),
    'POST /api/site/*': readSite('readSiteByPost'),
    'GET /api/prefixes/?': {
      id: 'listPrefixes',
      summary: 'List the prefixes that the Handle server is responsible for',
      responses: { 200: json('The prefixes', prefixList), 401: LOGIN_NEEDED },
    },
    'POST /api/prefixes/?': homePrefix('homePrefixes'),
    'DELETE /api/prefixes/?': unhomePrefix('unhomePrefixes'),
    'POST /api/prefixes/{prefix}': homePrefix('homePrefix'),
    'DELETE /api/prefixes/{prefix}': unhomePrefix('unhomePrefix'),
    'GET /api/verifications/{key?}': verify('verify'),
    'POST /api/verifications/{key?}': verify('verifyByPost'),
  },
);

const page = z.string();
const found: ResponseDescription = json('The handles', z.array(z.string()));
const pattern = optionalText('The value of the type URL; `*` stands for any text.');

export const reverseLookupRoutes = defineRoutes(
  {
    interface: 'record',
    tag: { name: 'Reverse lookup', description: 'The calls of the reverse lookup service, relayed.' },
    handler: 'reverseLookup',
    parameters: z.object({
      prefix: pathText('The prefix.', '21.T11998'),
      path: pathText('A path of the service.', 'ping'),
    }),
    errors: RELAY_ERRORS,
    errorContent: { 'application/json': recordError },
    responses: {
      401: { description: 'The login is wrong, or missing', content: { 'text/html': page } },
      default: RELAYED,
    },
    security: ['basic'],
  },
  {
    'GET /hrls/handles/?': {
      id: 'lookUpHandles',
      summary: 'The handles whose values match',
      description: 'Any other parameter is a type and the pattern of its value.',
      query: z.object({ URL: pattern }),
      responses: { 200: found },
    },
    'GET /hrls/handles/{prefix}': {
      id: 'lookUpHandlesOfPrefix',
      summary: 'The handles of a prefix whose values match',
      query: z.object({ URL: pattern }),
      responses: { 200: found },
    },
    'GET /hrls/ping': {
      id: 'pingLookup',
      summary: 'Whether the service runs',
      responses: { 200: { description: 'It runs', content: { 'text/plain': page } } },
      security: ['none', 'basic'],
    },
    'GET /hrls/{path?}': {
      id: 'relayToLookup',
      summary: 'Any other call of the service',
      responses: {},
      security: ['none', 'basic'],
    },
  },
);
