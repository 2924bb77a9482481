// The session store, and the source of random ids.
import { randomBytes, randomUUID } from 'node:crypto';
import type { ValueReference } from '../handle/value.js';

export interface Session {
  sessionId: string;
  nonce: string;
  identity?: ValueReference;
}

const LIFE_MS = 30 * 60_000;

/** Stores sessions, which expire after half an hour without use. */
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

  /** Renews a session and moves it to the end of the map, which is thus sorted by expiry. */
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
  /** Creates the id and nonce of a session. The nonce is 16 bytes in base64. */
  session: () => { sessionId: string; nonce: string };
  /** Creates the suffix of a minted handle. */
  suffix: () => string;
}

export const systemRandom: Random = {
  session: () => ({
    sessionId: `node0${BigInt(`0x${randomBytes(12).toString('hex')}`).toString(36)}`,
    nonce: randomBytes(16).toString('base64'),
  }),
  suffix: randomUUID,
};
