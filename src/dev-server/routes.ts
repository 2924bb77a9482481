// Routing of requests, and redirect pages.
import { type KeyPairKeyObjectResult, generateKeyPairSync } from 'node:crypto';
import { RESPONSE_CODE } from '../handle/outcome.js';
import type { SiteJson } from '../handle/value-data.js';
import { isPublic } from '../handle/value.js';
import { type DemoLogin, readLogin } from './login.js';
import { listHandles, listPrefixes, readHandle, removeHandle } from './operations.js';
import {
  type DemoCall,
  type DemoReply,
  type World,
  containerError,
  notHere,
  protocolError,
  refuse,
  succeed,
  type Answered,
  type DemoRequest,
} from './reply.js';
import { type DemoTarget, decodeHandle, hasBadEscape, readParameters, splitTarget } from './respond.js';
import { answerSessions } from './sessions.js';
import type { RecordStore } from './store.js';
import { DEFAULT_TTL } from './value.js';
import { writeHandle } from './write.js';
import { BadInput, javaException } from './bad-input.js';
import type { SessionStore } from './session-store.js';

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
export function createRouter(state: DemoState): (request: DemoRequest) => Answered {
  let serverKeys: KeyPairKeyObjectResult | undefined;
  const serverKey = (): KeyPairKeyObjectResult =>
    (serverKeys ??= generateKeyPairSync('rsa', { modulusLength: 2048 }));

  const sessions: DemoRoute = ({ path }, { method, secure, body }, login) =>
    answerSessions({ method, path, secure, login, body }, state, serverKey);

  const routeFor = ({ path }: DemoTarget): DemoRoute => {
    if (/^\/api\/handles(\/|$)/.test(path) || /^\/api\/handles\//i.test(path)) return handles(state);
    if (!/^\/api(\/|$)/.test(path)) return (target) => redirectPage(target, state);
    if (path.startsWith('/api/prefixes')) return prefixes(state);
    if (path === '/api/site') return () => succeed({ site: state.site });
    if (/^\/api\/verifications(\/|$)/.test(path)) return verifications;
    return unknownEndpoint;
  };

  return function answer(request) {
    const target = splitTarget(request.target);
    const parameters = readParameters(target.query);
    const isSession = /^\/api\/sessions(\/|$)/.test(target.path);
    try {
      const refusal = containerRefusal(request, target);
      if (refusal) return { reply: refusal, parameters };
      const login = loginOf(request, state);
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
  if (error instanceof BadInput) return refuse(RESPONSE_CODE.protocolError, { message: error.message });
  return refuse(RESPONSE_CODE.error, { message: 'Unexpected server error' });
}

function containerRefusal({ method, target }: DemoRequest, { path }: DemoTarget): DemoReply | undefined {
  if (target.length > MAX_TARGET) return containerError(414, 'URI Too Long');
  if (hasBadEscape(path)) return containerError(400, 'Bad Request');
  if (!SERVLET_METHODS.includes(method)) return protocolError(501, `Unknown method ${method}`);
  if (method === 'OPTIONS') return { status: 200, headers: [['Allow', SERVLET_METHODS_IN_ALLOW]] };
  return undefined;
}

const SERVLET_METHODS_IN_ALLOW = SERVLET_METHODS.join(', ');

/** Verifies the login. Over plain HTTP credentials are ignored. */
function loginOf({ secure, headers }: DemoRequest, state: DemoState): DemoLogin {
  return secure ? readLogin(headers, state) : { failed: false, basic: true };
}

function loginRefusal(login: DemoLogin): DemoReply | undefined {
  if (login.clientCert) return { status: 501 };
  return login.failed ? { status: 401, challenge: login } : undefined;
}

const handles =
  (world: World): DemoRoute =>
  (target, request, login) => {
    const { method, headers, body } = request;
    const rest = target.path.slice('/api/handles'.length);
    const post = method === 'POST' ? { contentType: headers['content-type'] ?? '', body } : undefined;
    const parameters = readParameters(target.query, post);
    const handle = decodeHandle(rest);
    const contentType = headers['content-type'];
    const call: DemoCall = { method, handle, parameters, contentType, body, identity: login.identity };
    return withBasic(operate(call, rest, world), login);
  };

function operate(call: DemoCall, rest: string, world: World): DemoReply {
  if (call.method === 'PUT') return writeHandle(call, world);
  if (call.method === 'DELETE') return removeHandle(call, world);
  if (call.handle !== '') return readHandle(call, world);
  if (rest.length > 1) return notHere('');
  if (call.parameters.has('prefix')) return listHandles(call, world);
  return refuse(RESPONSE_CODE.invalidHandle, { message: 'Empty handle invalid' });
}

/**
 * Replaces the challenge of a servlet's 401 with the challenge that the login filter chose for this client.
 */
function withBasic(reply: DemoReply, { basic, session }: DemoLogin): DemoReply {
  return reply.challenge ? { ...reply, challenge: { basic, session } } : reply;
}

const prefixes =
  (world: World): DemoRoute =>
  ({ path, query }, { method, body }, login) => {
    const isList = path === '/api/prefixes' && (method === 'GET' || method === 'HEAD');
    if (!isList) return { status: 405, headers: [['Allow', 'GET, HEAD, TRACE, OPTIONS']] };
    const parameters = readParameters(query);
    const { identity } = login;
    return withBasic(
      listPrefixes({ method, handle: '', parameters, contentType: undefined, body, identity }, world),
      login,
    );
  };

/** Rejects every verification request as incomplete, because verification is not implemented. */
const verifications: DemoRoute = ({ path }) => {
  const missing = /[^/]$/.test(path.slice('/api/verifications'.length))
    ? 'Missing parameters'
    : 'Handle not specified';
  throw javaException(`${missing} in verification request`);
};

const unknownEndpoint: DemoRoute = ({ path }, { method }) =>
  protocolError(404, `Unknown HTTP API endpoint ${method} ${path}`);

const page = (status: number, title: string, headers: [string, string][] = []): DemoReply => ({
  status,
  headers,
  html: `<!DOCTYPE html><title>${title}</title><h1>${title}</h1>`,
});

/**
 * Redirects `/<handle>` to the record's first public URL. Sends a page if none exists, or for `?noredirect`.
 */
export function redirectPage(
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
  const ttlSeconds = typeof url.ttl === 'number' ? url.ttl : DEFAULT_TTL;
  return page(302, 'Handle Redirect', [
    ['Location', url.data.toString('utf8')],
    ['Expires', new Date(now() + ttlSeconds * 1000).toUTCString()],
  ]);
}
