// The calls of a Handle server beside its records, and of the reverse look-up service: all of them are relayed.
import {
  type Operation,
  type Paths,
  type Schema,
  content,
  failures,
  header,
  inPath,
  list,
  query,
  ref,
  text,
} from './parts.js';

const JSON_TYPE = 'application/json';
const LOGINS = [{ basic: [] }, { session: [] }];
const error = content(JSON_TYPE, ref('RecordError'));

const PROXY_FAILURES = failures(
  [
    'BAD_PATH',
    'METHOD_REFUSED',
    'JSONP_WITH_LOGIN',
    'TRAFFIC_REFUSED',
    'RATE_LIMITED',
    'UPSTREAM_BAD_ANSWER',
    'UPSTREAM_UNREACHABLE',
    'UPSTREAM_REFUSED',
    'OVERLOADED',
    'UPSTREAM_TIMEOUT',
  ],
  error,
);

interface Relayed extends Pick<Operation, 'parameters' | 'requestBody' | 'security' | 'description'> {
  operationId: string;
  summary: string;
  responses: Operation['responses'];
}

const relayed =
  (tag: string) =>
  ({ responses, ...operation }: Relayed): Operation => ({
    tags: [tag],
    ...operation,
    responses: {
      ...PROXY_FAILURES,
      ...responses,
      default: { description: 'Another response of the server, as it came', ...error },
    },
  });

const onServer = relayed('Handle server');

const session = (description: string) => ({ description, ...content(JSON_TYPE, ref('Session')) });
const LOGIN_FAILED = { 401: { description: 'The login is wrong', ...content(JSON_TYPE, ref('Session')) } };
const NO_SESSION = { 403: { description: 'No such session, or not over https; without a body' } };

const login = (example: Record<string, string>): NonNullable<Operation['requestBody']> => ({
  description: 'The same may stand in `Authorization: Handle`',
  required: false,
  content: { [JSON_TYPE]: { schema: ref('SessionLogin'), example } },
});

const openSession = onServer({
  operationId: 'openSession',
  summary: 'Open a session',
  description: 'With Basic it is logged in at once. `cnonce` asks the server to prove itself.',
  requestBody: login({ cnonce: 'bm9uY2U=' }),
  responses: {
    201: { ...session('The session'), headers: { Location: header('`/api/sessions/this`') } },
    ...NO_SESSION,
  },
  security: [{}, ...LOGINS],
});

const readSession = onServer({
  operationId: 'readSession',
  summary: 'Read the session of the header Authorization',
  responses: { 200: session('The session, or `{"authenticated":false}` without one'), ...NO_SESSION },
  security: [{}, ...LOGINS],
});

const answerChallenge = (operationId: string): Operation =>
  onServer({
    operationId,
    summary: 'Answer the challenge of a session',
    requestBody: login({ sessionId: 'node0abc', id: '300:21.T11998/USER01', type: 'HS_SECKEY' }),
    responses: { 200: session('Logged in'), ...LOGIN_FAILED, ...NO_SESSION },
    security: LOGINS,
  });

const endSession = onServer({
  operationId: 'endSession',
  summary: 'End a session',
  responses: { 204: { description: 'Ended' }, ...NO_SESSION },
  security: LOGINS,
});

const done = (description: string, schema: Schema) => ({
  200: { description, ...content(JSON_TYPE, schema) },
});

const site = (operationId: string): Operation =>
  onServer({
    operationId,
    summary: 'Read the site record of the Handle server',
    responses: done('The site', ref('Site')),
  });

const prefix = inPath('prefix', 'The prefix handle.', '0.NA/21.T11998');

const listPrefixes = onServer({
  operationId: 'listPrefixes',
  summary: 'List the prefixes that the Handle server is responsible for',
  responses: done('The prefixes', ref('PrefixList')),
  security: LOGINS,
});

const homePrefix = (operationId: string, more: Pick<Relayed, 'parameters'> = {}): Operation =>
  onServer({
    operationId,
    summary: 'Make the Handle server responsible for a prefix',
    ...more,
    responses: done('Done', ref('RecordError')),
    security: LOGINS,
  });

const unhomePrefix = (operationId: string, more: Pick<Relayed, 'parameters'> = {}): Operation =>
  onServer({
    operationId,
    summary: 'End the responsibility of the Handle server for a prefix',
    ...more,
    responses: done('Done', ref('RecordError')),
    security: LOGINS,
  });

const verify = (operationId: string): Operation =>
  onServer({
    operationId,
    summary: 'Verify a signature that was made with an HS_SECKEY; other servers call it',
    parameters: [
      inPath('key', 'Index and handle of the HS_SECKEY.', '300:21.T11998/USER01'),
      query('nonce', 'What was signed, in base64.'),
      query('cnonce', 'What was signed too, in base64.'),
      query('alg', 'The algorithm, such as `SHA-1`.'),
      query('signature', 'In base64.'),
    ],
    responses: done('`isValid` says whether the signature is right', { type: 'object' }),
  });

export const endpointPaths: Paths = {
  '/api/sessions': { post: openSession },
  '/api/sessions/this': {
    get: readSession,
    put: answerChallenge('logIn'),
    post: answerChallenge('logInByPost'),
    delete: endSession,
  },
  '/api/site': { get: site('readSite'), post: site('readSiteByPost') },
  '/api/prefixes': {
    get: listPrefixes,
    post: homePrefix('homePrefixes'),
    delete: unhomePrefix('unhomePrefixes'),
  },
  '/api/prefixes/{prefix}': {
    post: homePrefix('homePrefix', { parameters: [prefix] }),
    delete: unhomePrefix('unhomePrefix', { parameters: [prefix] }),
  },
  '/api/verifications/{key}': { get: verify('verify'), post: verify('verifyByPost') },
};

const onLookup = relayed('Reverse look-up');
const found = done('The handles', list(text));

export const reverseLookupPaths: Paths = {
  '/hrls/handles': {
    get: onLookup({
      operationId: 'lookUpHandles',
      summary: 'The handles whose values match',
      description: 'Any other parameter is a type and the pattern of its value.',
      parameters: [query('URL', 'The value of the type URL; `*` stands for any text.')],
      responses: found,
      security: [{ basic: [] }],
    }),
  },
  '/hrls/handles/{prefix}': {
    get: onLookup({
      operationId: 'lookUpHandlesOfPrefix',
      summary: 'The handles of a prefix whose values match',
      parameters: [
        inPath('prefix', 'The prefix.', '21.T11998'),
        query('URL', 'The value of the type URL; `*` stands for any text.'),
      ],
      responses: found,
      security: [{ basic: [] }],
    }),
  },
};
