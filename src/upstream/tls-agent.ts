// An https.Agent that hands out a connection only once it is known who is at its other end.
import https from 'node:https';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { type PinCheck, createPinCheck } from './fingerprint.js';
import { destroyOnUnsolicitedData } from './unsolicited-data.js';

export interface Trust {
  /** PEM text of the only authorities to trust. */
  ca?: string | undefined;
  /** SHA-256 of the only certificates to trust, separated by commas; then neither chain nor name matters. */
  fingerprint?: string | undefined;
}

type Created = (error: Error | null, socket: Duplex) => void;

/** A request has no socket to time out on before that, so the handshake gets a limit here. */
const HANDSHAKE_TIMEOUT_MS = 10_000;

/**
 * Node's own writes a request while the handshake goes on: what fails then is a write, and nobody learns why. In its
 * asynchronous form createConnection returns nothing, so no request is written before the callback.
 */
export class TlsAgent extends https.Agent {
  readonly #checkPin: PinCheck;
  /** An Agent knows a connection only once it was handed out. */
  readonly #handshaking = new Set<TLSSocket>();

  constructor(options: https.AgentOptions, { ca, fingerprint }: Trust) {
    if (fingerprint === undefined) super(ca === undefined ? options : { ...options, ca });
    else super({ ...options, rejectUnauthorized: false, maxCachedSessions: 0 });
    this.#checkPin = fingerprint === undefined ? () => undefined : createPinCheck(fingerprint);
  }

  override createConnection(options: https.RequestOptions, created?: Created): undefined {
    const socket = super.createConnection(options) as TLSSocket;
    destroyOnUnsolicitedData(socket);
    this.#handshaking.add(socket);
    socket.once('close', () => this.#handshaking.delete(socket));
    const fail = (error: Error): void => {
      socket.destroy();
      created?.(error, socket);
    };
    const tooSlow = (): void => {
      fail(Object.assign(new Error('TLS handshake took too long'), { code: 'ETIMEDOUT' }));
    };
    socket.setTimeout(HANDSHAKE_TIMEOUT_MS, tooSlow);
    socket.once('error', fail);
    socket.once('secureConnect', () => {
      this.#handshaking.delete(socket);
      socket.setTimeout(0);
      socket.off('timeout', tooSlow);
      socket.off('error', fail);
      const mismatch = this.#checkPin(socket);
      if (mismatch) fail(mismatch);
      else created?.(null, socket);
    });
  }

  override destroy(): void {
    for (const socket of this.#handshaking) socket.destroy(new Error('the agent is closed'));
    super.destroy();
  }
}
