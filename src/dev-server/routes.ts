// Answers requests to the demo server: records, lists, sessions and redirect pages.
import { type KeyPairKeyObjectResult, generateKeyPairSync, sign } from 'node:crypto';
import { RIGHT, type SiteJson } from '../handle/value-data.js';
import { RESPONSE_CODE, listMembers } from '../handle/outcome.js';
import { DEFAULT_TTL_SECONDS, isPublic, createValueFilter, type ValueReference } from '../handle/value.js';
import { BadInput, javaException, parseJavaInt, readJson } from './java-input.js';
import {
  type DemoLogin,
  handleLogin,
  type HandleParameters,
  type Keys,
  readRequestLogin,
  type Session,
  type SessionStore,
} from './login.js';
import {
  type Answered,
  containerError,
  decodeHandle,
  type DemoCall,
  type DemoReply,
  type DemoRequest,
  type DemoTarget,
  hasBadEscape,
  isOn,
  notHere,
  protocolReply,
  refuseRequest,
  requestParameters,
  splitTarget,
  succeed,
  type World,
} from './respond.js';
import { type RecordStore, prefixHandle } from './store.js';
import { type StoredValue, valueToJson } from './value.js';
import { writeHandle, neededForRemoving } from './write.js';

export interface DemoState extends World {
  sessions: SessionStore;
  site: SiteJson;
  now: () => number;
}

type DemoRoute = (target: DemoTarget, request: DemoRequest, login: DemoLogin) => DemoReply;

/** Maximum length of a request target; a longer one does not fit into Jetty's 8 KiB header buffer. */
const MAX_TARGET = 8000;
const SERVLET_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'TRACE', 'OPTIONS'];

/** Creates the function that answers every request except those rejected by the HTTP parser. */
export function createRequestRouter(state: DemoState): (request: DemoRequest) => Answered {
  const sessions = createSessionsRoute(state);
  const routeFor = ({ path }: DemoTarget): DemoRoute => {
    if (/^\/api\/handles(\/|$)/.test(path) || /^\/api\/handles\//i.test(path))
      return createHandlesRoute(state);
    if (!/^\/api(\/|$)/.test(path)) return (target) => redirectPage(target, state);
    if (path.startsWith('/api/prefixes')) return prefixes(state);
    if (path === '/api/site') return () => succeed({ site: state.site });
    if (/^\/api\/verifications(\/|$)/.test(path)) return verifications;
    return unknownEndpoint;
  };

  return function answer(request) {
    const target = splitTarget(request.target);
    const parameters = requestParameters(target.query);
    const isSession = isSessionPath(target.path);
    try {
      const refusal = containerRefusal(request, target);
      if (refusal) return { reply: refusal, parameters };
      // Over plain HTTP credentials are ignored.
      const login = request.secure
        ? readRequestLogin(request.headers, state)
        : { failed: false, basic: true };
      const reply = isSession
        ? sessions(target, request, login)
        : (loginRefusal(login) ?? routeFor(target)(target, request, login));
      return { reply, parameters };
    } catch (error) {
      return { reply: failure(error), parameters };
    }
  };
}

function failure(error: unknown): DemoReply {
  if (error instanceof BadInput)
    return refuseRequest(RESPONSE_CODE.protocolError, { message: error.message });
  return refuseRequest(RESPONSE_CODE.error, { message: 'Unexpected server error' });
}

const isSessionPath = (path: string): boolean => /^\/api\/sessions(\/|$)/.test(path);

function containerRefusal(
  { method, target }: DemoRequest,
  { path, query }: DemoTarget,
): DemoReply | undefined {
  if (target.length > MAX_TARGET) return containerError(414, 'URI Too Long');
  if (hasBadEscape(path) || /%(?![0-9a-f]{2})/i.test(query)) return containerError(400, 'Bad Request');
  if (!SERVLET_METHODS.includes(method) && !isSessionPath(path))
    return protocolReply(501, `Unknown method ${method}`);
  if (method === 'OPTIONS') return { status: 200, headers: [['Allow', SERVLET_METHODS.join(', ')]] };
  return undefined;
}

function loginRefusal(login: DemoLogin): DemoReply | undefined {
  if (login.clientCert) return { status: 501 };
  return login.failed ? { status: 401, challenge: login } : undefined;
}

const createHandlesRoute =
  (world: World): DemoRoute =>
  (target, request, login) => {
    const { method, headers, body } = request;
    const rest = target.path.slice('/api/handles'.length);
    const post = method === 'POST' ? { contentType: headers['content-type'] ?? '', body } : undefined;
    const parameters = requestParameters(target.query, post);
    const handle = decodeHandle(rest);
    const contentType = headers['content-type'];
    const call: DemoCall = { method, handle, parameters, contentType, body, identity: login.identity };
    return withBasic(operate(call, rest, world), login);
  };

function operate(call: DemoCall, rest: string, world: World): DemoReply {
  if (call.method === 'PUT') return writeHandle(call, world);
  if (call.method === 'DELETE') return removeHandle(call, world);
  if (call.handle !== '') return answerRead(call, world);
  if (rest.length > 1) return notHere('');
  if (call.parameters.has('prefix')) return answerList(call, world);
  return refuseRequest(RESPONSE_CODE.invalidHandle, { message: 'Empty handle invalid' });
}

/** Replaces the challenge of a servlet's 401 with that of the login filter for this client. */
function withBasic(reply: DemoReply, { basic, session }: DemoLogin): DemoReply {
  return reply.challenge ? { ...reply, challenge: { basic, session } } : reply;
}

const prefixes =
  (world: World): DemoRoute =>
  ({ path }, { method }, login) => {
    const isList = path === '/api/prefixes' && (method === 'GET' || method === 'HEAD');
    if (!isList) return { status: 405, headers: [['Allow', 'GET, HEAD, TRACE, OPTIONS']] };
    return withBasic(answerPrefixes(login, world), login);
  };

/** Rejects every verification request as incomplete, because verification is not implemented. */
const verifications: DemoRoute = ({ path }) => {
  const missing = /[^/]$/.test(path.slice('/api/verifications'.length))
    ? 'Missing parameters'
    : 'Handle not specified';
  throw javaException(`${missing} in verification request`);
};

const unknownEndpoint: DemoRoute = ({ path }, { method }) =>
  protocolReply(404, `Unknown HTTP API endpoint ${method} ${path}`);

const page = (status: number, title: string, headers: [string, string][] = []): DemoReply => ({
  status,
  headers,
  html: `<!DOCTYPE html><title>${title}</title><h1>${title}</h1>`,
});

/** Redirects `/<handle>` to its first public URL; sends a page without one, and for `?noredirect`. */
function redirectPage(
  { path, query }: DemoTarget,
  { store, now }: { store: RecordStore; now: () => number },
): DemoReply {
  const handle = decodeHandle(path);
  if (handle === '') return page(200, 'Demo Handle server');
  if (!store.isHomed(handle)) return page(400, 'Resolution Error');
  const record = store.get(handle);
  if (record === undefined) return page(404, 'Not Found');
  const url = record.find((value) => value.type === 'URL' && isPublic(value));
  if (url === undefined || query.startsWith('noredirect')) return page(200, 'Handle Values');
  const ttlSeconds = typeof url.ttl === 'number' ? url.ttl : DEFAULT_TTL_SECONDS;
  return page(302, 'Handle Redirect', [
    ['Location', url.data.toString('utf8')],
    ['Expires', new Date(now() + ttlSeconds * 1000).toUTCString()],
  ]);
}

/** Answers a resolution. If no value remains, the response is HTTP 200 with code 200. */
function answerRead(call: DemoCall, world: World): DemoReply {
  const { handle, parameters } = call;
  const indexes = parameters.getAll('index').map(parseJavaInt);
  if (!world.store.isHomed(handle)) return notHere(handle);
  const record = world.store.get(handle);
  if (record === undefined) return refuseRequest(RESPONSE_CODE.handleNotFound, { handle });
  const wanted = record.filter(createValueFilter({ indexes, types: parameters.getAll('type') }));
  if (isPublicOnly(call)) return answerRequest(handle, wanted.filter(isPublic));
  return hiddenRefusal(call, world, record, wanted) ?? answerRequest(handle, wanted);
}

function isPublicOnly({ parameters, identity }: DemoCall): boolean {
  const given = parameters.get('publicOnly');
  return given === null ? identity === undefined : isOn(given);
}

function answerRequest(handle: string, values: StoredValue[]): DemoReply {
  if (values.length > 0) return succeed({ handle, values: values.map(valueToJson) });
  return { status: 200, json: { responseCode: RESPONSE_CODE.valuesNotFound, values: [], handle } };
}

/** Returns a refusal for the whole request, determined by the first hidden value. */
function hiddenRefusal(
  { handle, identity }: DemoCall,
  { rights }: World,
  record: readonly StoredValue[],
  wanted: readonly StoredValue[],
): DemoReply | undefined {
  const hidden = wanted.find((value) => !isPublic(value));
  if (hidden === undefined) return undefined;
  if (!hidden.permissions.startsWith('1'))
    return refuseRequest(RESPONSE_CODE.insufficientPermissions, { handle });
  if (identity === undefined) return refuseRequest(RESPONSE_CODE.authenticationNeeded, { handle });
  const mayRead = (rights.on(record, identity) & RIGHT.readValue) !== 0;
  return mayRead ? undefined : refuseRequest(RESPONSE_CODE.invalidAdmin, { handle });
}

/** Checks the login before existence; a foreign prefix is "not found" (recordings "delete: …"). */
function removeHandle({ handle, parameters, identity }: DemoCall, { store, rights }: World): DemoReply {
  const indexes = parameters.getAll('index').map(parseJavaInt);
  if (identity === undefined) return refuseRequest(RESPONSE_CODE.authenticationNeeded, { handle });
  const record = handle === '' ? undefined : store.get(handle);
  if (record === undefined) return refuseRequest(RESPONSE_CODE.handleNotFound, { handle });
  const removed = record.filter(({ index }) => indexes.includes(index));
  if (removed.length < new Set(indexes).size) return refuseRequest(RESPONSE_CODE.valuesNotFound, { handle });
  const isWhole = indexes.length === 0;
  const needed = isWhole ? RIGHT.deleteHandle : neededForRemoving(removed);
  if ((rights.on(record, identity) & needed) !== needed)
    return refuseRequest(RESPONSE_CODE.invalidAdmin, { handle });
  if (isWhole) store.delete(handle);
  else
    store.set(
      handle,
      record.filter((value) => !removed.includes(value)),
    );
  return succeed({ handle });
}

/** Lists the handles of `prefix`: one page if page and pageSize are set, else all, without echoing either. */
function answerList({ parameters, identity }: DemoCall, { store, rights }: World): DemoReply {
  const prefix = parameters.get('prefix') ?? '';
  const [page = -1, pageSize = -1] = ['page', 'pageSize'].map((name) =>
    parseJavaInt(parameters.get(name) ?? '-1'),
  );
  if (!store.prefixes.includes(prefixHandle(prefix))) return notHere(prefix);
  if (identity === undefined) return refuseRequest(RESPONSE_CODE.authenticationNeeded, { handle: prefix });
  const granted = rights.on(store.get(prefixHandle(prefix)) ?? [], identity);
  if ((granted & RIGHT.listHandles) === 0)
    return refuseRequest(RESPONSE_CODE.invalidAdmin, { handle: prefix });
  const paging = page < 0 || pageSize < 0 ? {} : { page, pageSize };
  return { status: 200, json: listMembers(prefix, store.storedHandles(prefix), paging) };
}

function answerPrefixes({ identity }: DemoLogin, { store, rights }: World): DemoReply {
  if (identity === undefined) return refuseRequest(RESPONSE_CODE.authenticationNeeded);
  if (!rights.isServerAdmin(identity)) return refuseRequest(RESPONSE_CODE.invalidAdmin);
  const { prefixes } = store;
  return succeed({ totalCount: String(prefixes.length), prefixes });
}

const empty = (status: number, headers: [string, string][] = []): DemoReply => ({ status, headers });

/** Answers requests below /api/sessions. The key of the server is generated when a client requests a proof. */
function createSessionsRoute(keys: Keys): DemoRoute {
  let serverKeys: KeyPairKeyObjectResult | undefined;
  const serverKey = (): KeyPairKeyObjectResult =>
    (serverKeys ??= generateKeyPairSync('rsa', { modulusLength: 2048 }));
  return ({ path }, request, login) => {
    const { method, secure, body } = request;
    if (!secure) return empty(403);
    if (path === '/api/sessions/this' && SERVLET_METHODS.includes(method))
      return answerThis(request, login, keys);
    if (method === 'GET' && path.length > '/api/sessions/'.length) return empty(403);
    if (method !== 'POST') return empty(405, [['Allow', 'POST, TRACE, OPTIONS']]);
    return openSession(parametersIn(body), login, keys, serverKey);
  };
}

function openSession(
  sent: HandleParameters,
  login: DemoLogin,
  keys: Keys,
  serverKey: () => KeyPairKeyObjectResult,
): DemoReply {
  if (login.session !== undefined || sent.sessionId !== undefined) return empty(400);
  const session = keys.sessions.create();
  if (login.identity) session.identity = login.identity;
  const cnonce = login.cnonce ?? sent.cnonce;
  const proof = cnonce === undefined ? {} : serverProof(session, cnonce, serverKey());
  return {
    status: 201,
    headers: [['Location', '/api/sessions/this']],
    json: {
      ...describeRecord(session),
      ...proof,
      ...identityMembers(session.identity),
      ...errorMembers(login),
    },
  };
}

function answerThis({ method, body }: DemoRequest, login: DemoLogin, keys: Keys): DemoReply {
  if (method === 'GET' || method === 'HEAD') return show(login);
  if (method === 'DELETE') return endSession(login, keys);
  const answered = login.session === undefined ? handleLogin(parametersIn(body), keys) : login;
  const { session } = answered;
  if (session === undefined) return empty(403);
  const json = {
    ...describeRecord(session),
    ...identityMembers(answered.failed ? undefined : session.identity),
    ...errorMembers(answered),
  };
  if (!answered.failed) return { status: 200, json };
  return { status: 401, json, challenge: { basic: false, error: answered.error, session } };
}

function show(login: DemoLogin): DemoReply {
  const { session } = login;
  if (session)
    return { status: 200, json: { ...describeRecord(session), ...identityMembers(session.identity) } };
  return login.failed ? empty(403) : { status: 200, json: { authenticated: false } };
}

function endSession({ session }: DemoLogin, { sessions }: Keys): DemoReply {
  if (session === undefined) return empty(403);
  sessions.delete(session.sessionId);
  return empty(204);
}

const describeRecord = ({ sessionId, nonce }: Session): Record<string, unknown> => ({ sessionId, nonce });

const identityMembers = (identity: ValueReference | undefined): Record<string, unknown> =>
  identity ? { authenticated: true, id: `${identity.index}:${identity.handle}` } : {};

const errorMembers = ({ error }: DemoLogin): Record<string, unknown> =>
  error === undefined ? {} : { error };

/** Signs both nonces with the server's site key. */
function serverProof(
  { nonce }: Session,
  cnonce: string,
  { privateKey }: KeyPairKeyObjectResult,
): Record<string, unknown> {
  const signed = Buffer.concat([Buffer.from(nonce, 'base64'), Buffer.from(cnonce, 'base64')]);
  return { serverAlg: 'SHA-256', serverSignature: sign('sha256', signed, privateKey).toString('base64') };
}

function parametersIn(body: Buffer): HandleParameters {
  const json = readJson(body.toString('utf8'));
  return json !== null && typeof json === 'object' ? json : {};
}
