// Sessions: the session store, /api/sessions, and random ids.
import { type KeyPairKeyObjectResult, randomBytes, randomUUID, sign } from 'node:crypto';
import type { ValueReference } from '../../src/handle/value.js';
import { readJson } from './lenient-json.js';
import { type HandleParameters, type Keys, type Login, handleLogin } from './login.js';
import type { Reply } from './reply.js';

export interface Session {
  sessionId: string;
  nonce: string;
  identity?: ValueReference;
}

const LIFE_MS = 30 * 60_000;

/** The sessions of a server, which expire after half an hour without use. */
export class SessionStore {
  readonly #sessions = new Map<string, { session: Session; expiresAt: number }>();
  readonly #now: () => number;
  readonly #random: Random;

  constructor({ now, random }: { now: () => number; random: Random }) {
    this.#now = now;
    this.#random = random;
  }

  open(): Session {
    const session: Session = this.#random.session();
    this.#forgetExpired();
    this.#keep(session);
    return session;
  }

  get(sessionId: string): Session | undefined {
    const found = this.#sessions.get(sessionId);
    if (found === undefined || found.expiresAt <= this.#now()) return undefined;
    this.#keep(found.session);
    return found.session;
  }

  delete(sessionId: string): void {
    this.#sessions.delete(sessionId);
  }

  /** Moves a session to the end of the map, which is therefore ordered by expiry. */
  #keep(session: Session): void {
    this.#sessions.delete(session.sessionId);
    this.#sessions.set(session.sessionId, { session, expiresAt: this.#now() + LIFE_MS });
  }

  #forgetExpired(): void {
    for (const [sessionId, { expiresAt }] of this.#sessions) {
      if (expiresAt > this.#now()) return;
      this.#sessions.delete(sessionId);
    }
  }
}

export interface SessionRequest {
  method: string;
  path: string;
  secure: boolean;
  login: Login;
  body: Buffer;
}

const empty = (status: number, headers: [string, string][] = []): Reply => ({ status, headers });

/** Answers requests below /api/sessions. Calls `serverKey` only if the client requests a proof. */
export function answerSessions(
  request: SessionRequest,
  keys: Keys,
  serverKey: () => KeyPairKeyObjectResult,
): Reply {
  if (!request.secure) return empty(403);
  if (request.path === '/api/sessions/this') return answerThis(request, keys);
  if (request.method !== 'POST') return empty(405, [['Allow', 'POST, TRACE, OPTIONS']]);
  return open(request, keys, serverKey);
}

function open({ login, body }: SessionRequest, keys: Keys, serverKey: () => KeyPairKeyObjectResult): Reply {
  const sent = parametersIn(body);
  if (login.session !== undefined || sent.sessionId !== undefined) return empty(400);
  const session = keys.sessions.open();
  if (login.identity) session.identity = login.identity;
  const cnonce = login.cnonce ?? sent.cnonce;
  const proof = cnonce === undefined ? {} : serverProof(session, cnonce, serverKey());
  return {
    status: 201,
    headers: [['Location', '/api/sessions/this']],
    json: { ...describe(session), ...proof, ...who(session.identity), ...why(login) },
  };
}

function answerThis({ method, login, body }: SessionRequest, keys: Keys): Reply {
  if (method === 'GET' || method === 'HEAD') return show(login);
  if (method === 'DELETE') return end(login, keys);
  const answered = login.session === undefined ? handleLogin(parametersIn(body), keys) : login;
  const { session } = answered;
  if (session === undefined) return empty(403);
  const json = {
    ...describe(session),
    ...who(answered.failed ? undefined : session.identity),
    ...why(answered),
  };
  if (!answered.failed) return { status: 200, json };
  return { status: 401, json, challenge: { basic: false, error: answered.error, session } };
}

function show(login: Login): Reply {
  if (login.session)
    return { status: 200, json: { ...describe(login.session), ...who(login.session.identity) } };
  return login.failed ? empty(403) : { status: 200, json: { authenticated: false } };
}

function end({ session }: Login, { sessions }: Keys): Reply {
  if (session === undefined) return empty(403);
  sessions.delete(session.sessionId);
  return empty(204);
}

const describe = ({ sessionId, nonce }: Session): Record<string, unknown> => ({ sessionId, nonce });

const who = (identity: ValueReference | undefined): Record<string, unknown> =>
  identity ? { authenticated: true, id: `${identity.index}:${identity.handle}` } : {};

const why = ({ error }: Login): Record<string, unknown> => (error === undefined ? {} : { error });

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

export interface Random {
  /** Creates the id and nonce of a session. The nonce is 16 bytes in Base64. */
  session: () => { sessionId: string; nonce: string };
  /** Creates the minted suffix of a handle. */
  suffix: () => string;
}

export const systemRandom: Random = {
  session: () => ({
    sessionId: `node0${BigInt(`0x${randomBytes(12).toString('hex')}`).toString(36)}`,
    nonce: randomBytes(16).toString('base64'),
  }),
  suffix: randomUUID,
};
