// The relayed routes: Handle server endpoints other than records.
import { z } from 'zod';
import type { ErrorCode } from '../errors.js';
import { anyObject, json, optionalText, pathText } from '../http/schemas.js';
import { defineRoutes } from '../http/route-table.js';
import { LOGIN_NEEDED, LOGINS } from './routes.js';
import { prefixList, recordError, session, sessionLogin, site } from '../http/record-schemas.js';

export const RELAY_ERRORS: readonly ErrorCode[] = [
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
export const RELAYED = json('Another response of the server, relayed unchanged', recordError);

const loginBody = (example: Record<string, string>) => ({
  description: 'The login parameters, which may be sent in `Authorization: Handle …` instead',
  isOptional: true,
  content: { 'application/json': sessionLogin },
  example,
});

const ofSession = {
  401: json('Wrong credentials', session),
  403: 'Unknown session, or a session over plain http (no body)',
};

const answerChallenge = <const Id extends string>(id: Id) => ({
  id,
  summary: 'Log in by answering the challenge of a session',
  body: loginBody({ sessionId: 'node0abc', id: '300:21.T11998/USER01', type: 'HS_SECKEY' }),
  responses: { 200: json('The authenticated session', session), ...ofSession },
});

const readSite = <const Id extends string>(id: Id) => ({
  id,
  summary: 'Read the site record of the Handle server',
  responses: { 200: json('The site record', site) },
  security: ['none'] as const,
});

const done = { 200: json('Success', recordError), 401: LOGIN_NEEDED };

const homePrefix = <const Id extends string>(id: Id) => ({
  id,
  summary: 'Make the Handle server responsible for a prefix',
  responses: done,
});

const unhomePrefix = <const Id extends string>(id: Id) => ({
  id,
  summary: 'Make the Handle server no longer responsible for a prefix',
  responses: done,
});

const verify = <const Id extends string>(id: Id) => ({
  id,
  summary: 'Verify a signature by a secret key (HS_SECKEY)',
  description: 'Called by other Handle servers to verify a login.',
  query: z.object({
    nonce: optionalText('Signed nonce of the server, in base64.'),
    cnonce: optionalText('Signed nonce of the client, in base64.'),
    alg: optionalText('Algorithm of the signature, such as `SHA-1`.'),
    signature: optionalText('The signature, in base64.'),
  }),
  responses: { 200: json('Whether the signature is valid, in `isValid`', anyObject), 401: LOGIN_NEEDED },
  security: ['none'] as const,
});

export const endpointRoutes = defineRoutes(
  {
    interface: 'record',
    tag: {
      name: 'Handle server',
      description:
        'Other endpoints of a Handle server, relayed and never cached. HDLProxy does not have them.',
    },
    handler: 'passThrough',
    parameters: z.object({
      prefix: pathText('Handle of the prefix.', '0.NA/21.T11998'),
      key: pathText('Index and handle of the secret key (HS_SECKEY).', '300:21.T11998/USER01'),
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
      description:
        'With Basic credentials, the session is authenticated immediately; if they are wrong, the response has an `error`. With `cnonce`, the server proves its identity with a signature.',
      body: loginBody({ cnonce: 'bm9uY2U=' }),
      responses: {
        201: { ...json('The new session', session), headers: { Location: 'Always `/api/sessions/this`.' } },
        ...ofSession,
      },
      security: ['none', ...LOGINS],
    },
    'GET /api/sessions/this': {
      id: 'readSession',
      summary: 'Read the session in the Authorization header',
      responses: {
        200: json('The session; `{"authenticated":false}` if the request names none', session),
        ...ofSession,
      },
      security: ['none', ...LOGINS],
    },
    'PUT /api/sessions/this': answerChallenge('logIn'),
    'POST /api/sessions/this': answerChallenge('logInByPost'),
    'DELETE /api/sessions/this': {
      id: 'endSession',
      summary: 'End a session',
      responses: { 204: 'The session has ended', ...ofSession },
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
