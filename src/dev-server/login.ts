// Authorization headers, and the verification of passwords and challenge responses.
import { createHash, createPublicKey, getHashes, randomBytes, randomUUID, verify } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { LRUCache } from 'lru-cache';
import { tryDecode } from '../handle/bytes.js';
import { decodePublicKey } from '../handle/value-data.js';
import { type ValueReference, parseReference } from '../handle/value.js';
import type { RecordStore } from './store.js';

/** The login of a request. A `failed` login gets 401, except at `/api/sessions` or for `clientCert`. */
export interface DemoLogin {
  failed: boolean;
  /** Whether a 401 offers Basic. */
  basic: boolean;
  identity?: ValueReference | undefined;
  session?: Session | undefined;
  error?: string | undefined;
  /** The client's nonce, sent to request a proof from the server. */
  cnonce?: string | undefined;
  /** Whether the login uses a TLS client certificate, which the demo server does not support. */
  clientCert?: boolean;
}

/** The parameters of `Authorization: Handle`, or of the JSON body of a session request. */
export type HandleParameters = Partial<Record<string, string>>;

export interface Keys {
  store: RecordStore;
  sessions: SessionStore;
}

/** XMLHttpRequest gets no Basic challenge, which would open the browser's dialog. */
const anonymous = (headers: IncomingHttpHeaders): DemoLogin => ({
  failed: false,
  basic: headers['x-requested-with'] !== 'XMLHttpRequest',
});

/** Verifies the Authorization header of a request over TLS. */
export function readRequestLogin(headers: IncomingHttpHeaders, keys: Keys): DemoLogin {
  const { authorization } = headers;
  if (authorization === undefined) return anonymous(headers);
  const [scheme = '', rest = ''] = authorization.split(/\s+(.*)/s);
  if (/^basic$/i.test(scheme)) return basicLoginIn(rest, keys);
  if (/^handle$/i.test(scheme)) return handleLogin(challengeParameters(rest), keys);
  return { failed: true, basic: false };
}

/** Verifies a Basic login: a percent-encoded user name, because a colon would end it, and a raw password. */
function basicLoginIn(encoded: string, { store }: Keys): DemoLogin {
  const decoded = Buffer.from(encoded, 'base64');
  const colon = decoded.indexOf(':');
  if (colon === -1) return { failed: true, basic: true };
  const identity = parseReference(unescapeText(decoded.subarray(0, colon).toString('utf8')));
  const password = decoded.subarray(colon + 1);
  const error = keyError(store, identity, 'HS_SECKEY', (key) => key.equals(password));
  return error === undefined
    ? { failed: false, basic: true, identity }
    : { failed: true, basic: true, error };
}

/** Looks up the session, and verifies the challenge response if the request contains one. */
export function handleLogin(parameters: HandleParameters, { store, sessions }: Keys): DemoLogin {
  if (parameters.clientCert === 'true') return { failed: true, basic: false, clientCert: true };
  const { sessionId, cnonce, id, type, alg, signature } = parameters;
  const session = sessionId === undefined ? undefined : sessions.get(sessionId);
  if (session === undefined) return { failed: sessionId !== undefined, basic: false, cnonce };
  if (
    id === undefined ||
    cnonce === undefined ||
    type === undefined ||
    alg === undefined ||
    signature === undefined
  )
    return { failed: false, basic: false, session, identity: session.identity, cnonce };
  const error = answerError(store, session.nonce, { id, cnonce, type, alg, signature });
  if (error !== undefined) return { failed: true, basic: false, session, error };
  session.identity = parseReference(id);
  return { failed: false, basic: false, session, identity: session.identity };
}

function challengeParameters(text: string): HandleParameters {
  const pairs = [...text.matchAll(/(?<!\w)(\w+)\s*=\s*"([^"]*)"/g)];
  const parameters: HandleParameters = Object.fromEntries(
    pairs.map(([, name = '', value = '']) => [name, value]),
  );
  return parameters.id === undefined ? parameters : { ...parameters, id: unescapeText(parameters.id) };
}

const unescapeText = (text: string): string => tryDecode(decodeURIComponent, text) ?? text;

const NOT_VERIFIED = 'Identity not verified';
const LOOKUP_FAILED = 'Exception (net.handle.hdllib.HandleException) verifying identity';

/** Returns why a challenge response does not prove the identity, or undefined if the response is valid. */
function answerError(
  store: RecordStore,
  nonce: string,
  answer: Record<'id' | 'type' | 'alg' | 'cnonce' | 'signature', string>,
): string | undefined {
  const signed = Buffer.concat([Buffer.from(nonce, 'base64'), Buffer.from(answer.cnonce, 'base64')]);
  const signature = Buffer.from(answer.signature, 'base64');
  const algorithm = digestName(answer.alg);
  if (algorithm === undefined) return NOT_VERIFIED;
  const fits = (key: Buffer): boolean =>
    answer.type === 'HS_SECKEY'
      ? createHash(algorithm)
          .update(Buffer.concat([key, signed, key]))
          .digest()
          .equals(signature)
      : isSignature(key, algorithm, signed, signature);
  return keyError(store, parseReference(answer.id), answer.type, fits);
}

/** Returns why no key of this type proves the identity; undefined if one fits. */
function keyError(
  store: RecordStore,
  { index, handle }: ValueReference,
  type: string,
  fits: (key: Buffer) => boolean,
): string | undefined {
  if (!store.isHomed(handle)) return LOOKUP_FAILED;
  const keys = (store.get(handle) ?? []).filter(
    (value) => value.type === type && (index === 0 || index === value.index),
  );
  return keys.some(({ data }) => fits(data)) ? undefined : NOT_VERIFIED;
}

/** Returns the digest name for `SHA256`, `SHA-256` or `sha256`. */
function digestName(alg: string): string | undefined {
  const name = alg.replace('-', '').toLowerCase();
  return getHashes().includes(name) ? name : undefined;
}

function isSignature(key: Buffer, algorithm: string, signed: Buffer, signature: Buffer): boolean {
  const jwk = tryDecode(decodePublicKey, key);
  if (jwk?.kty !== 'RSA') return false;
  return verify(algorithm, signed, createPublicKey({ key: jwk, format: 'jwk' }), signature);
}

export interface Session {
  sessionId: string;
  nonce: string;
  identity?: ValueReference;
}

const LIFE_MS = 30 * 60_000;
const MAX_SESSIONS = 10_000;

/** Stores sessions, which expire after half an hour without use. */
export class SessionStore extends LRUCache<string, Session> {
  readonly #random: Random;

  constructor({ now, random }: { now: () => number; random: Random }) {
    super({ max: MAX_SESSIONS, ttl: LIFE_MS, updateAgeOnGet: true, ttlResolution: 0, perf: { now } });
    this.#random = random;
  }

  create(): Session {
    const session: Session = this.#random.session();
    this.set(session.sessionId, session);
    return session;
  }
}

export interface Random {
  /** Creates the id and nonce of a session. The nonce is 16 bytes in base64. */
  session: () => { sessionId: string; nonce: string };
  suffix: () => string;
}

export const systemRandom: Random = {
  session: () => ({
    sessionId: `node0${BigInt(`0x${randomBytes(12).toString('hex')}`).toString(36)}`,
    nonce: randomBytes(16).toString('base64'),
  }),
  suffix: randomUUID,
};
