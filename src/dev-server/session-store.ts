// The sessions of the server, and random ids.
import { randomBytes, randomUUID } from 'node:crypto';
import type { ValueReference } from '../handle/value.js';

export interface Session {
  sessionId: string;
  nonce: string;
  identity?: ValueReference;
}

const LIFE_MS = 30 * 60_000;

/** The sessions of a server; one not used for half an hour is gone. */
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

  /** Puts a session last in the map, which so stays in the order of expiry. */
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

export interface Random {
  /** Id and nonce of a new session; the nonce is sixteen bytes in base64. */
  session: () => { sessionId: string; nonce: string };
  /** The suffix that is minted behind a handle. */
  suffix: () => string;
}

export const systemRandom: Random = {
  session: () => ({
    sessionId: `node0${BigInt(`0x${randomBytes(12).toString('hex')}`).toString(36)}`,
    nonce: randomBytes(16).toString('base64'),
  }),
  suffix: randomUUID,
};
