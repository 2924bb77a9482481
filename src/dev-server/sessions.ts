// The session resources: /api/sessions and /api/sessions/this.
import { type KeyPairKeyObjectResult, sign } from 'node:crypto';
import type { ValueReference } from '../handle/value.js';
import { readJson } from './lenient-json.js';
import { type HandleParameters, type Keys, type DemoLogin, handleLogin } from './login.js';
import type { DemoReply } from './reply.js';
import type { Session } from './session-store.js';

export interface SessionRequest {
  method: string;
  path: string;
  secure: boolean;
  login: DemoLogin;
  body: Buffer;
}

const empty = (status: number, headers: [string, string][] = []): DemoReply => ({ status, headers });

/** Answers requests below /api/sessions. Calls `serverKey` only if the client requests a proof. */
export function answerSessions(
  request: SessionRequest,
  keys: Keys,
  serverKey: () => KeyPairKeyObjectResult,
): DemoReply {
  if (!request.secure) return empty(403);
  if (request.path === '/api/sessions/this') return answerThis(request, keys);
  if (request.method !== 'POST') return empty(405, [['Allow', 'POST, TRACE, OPTIONS']]);
  return open(request, keys, serverKey);
}

function open(
  { login, body }: SessionRequest,
  keys: Keys,
  serverKey: () => KeyPairKeyObjectResult,
): DemoReply {
  const sent = parametersIn(body);
  if (login.session !== undefined || sent.sessionId !== undefined) return empty(400);
  const session = keys.sessions.open();
  if (login.identity) session.identity = login.identity;
  const cnonce = login.cnonce ?? sent.cnonce;
  const proof = cnonce === undefined ? {} : serverProof(session, cnonce, serverKey());
  return {
    status: 201,
    headers: [['Location', '/api/sessions/this']],
    json: { ...describe(session), ...proof, ...identityMembers(session.identity), ...errorMembers(login) },
  };
}

function answerThis({ method, login, body }: SessionRequest, keys: Keys): DemoReply {
  if (method === 'GET' || method === 'HEAD') return show(login);
  if (method === 'DELETE') return end(login, keys);
  const answered = login.session === undefined ? handleLogin(parametersIn(body), keys) : login;
  const { session } = answered;
  if (session === undefined) return empty(403);
  const json = {
    ...describe(session),
    ...identityMembers(answered.failed ? undefined : session.identity),
    ...errorMembers(answered),
  };
  if (!answered.failed) return { status: 200, json };
  return { status: 401, json, challenge: { basic: false, error: answered.error, session } };
}

function show(login: DemoLogin): DemoReply {
  if (login.session)
    return { status: 200, json: { ...describe(login.session), ...identityMembers(login.session.identity) } };
  return login.failed ? empty(403) : { status: 200, json: { authenticated: false } };
}

function end({ session }: DemoLogin, { sessions }: Keys): DemoReply {
  if (session === undefined) return empty(403);
  sessions.delete(session.sessionId);
  return empty(204);
}

const describe = ({ sessionId, nonce }: Session): Record<string, unknown> => ({ sessionId, nonce });

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
  return {
    serverAlg: 'SHA-256',
    serverSignature: sign('sha256', signed, privateKey).toString('base64'),
  };
}

function parametersIn(body: Buffer): HandleParameters {
  const json = readJson(body.toString('utf8'));
  return json !== null && typeof json === 'object' ? json : {};
}
