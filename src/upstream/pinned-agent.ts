// A keep-alive https.Agent that hands out a connection only after its certificate matched the pin.
import https from 'node:https';
import type { Duplex } from 'node:stream';
import tls from 'node:tls';
import type { PinCheck } from './pin.js';

type Created = (error: Error | null, socket: Duplex) => void;

/** A request has no socket to time out on before the pin was checked, so the handshake gets a limit here. */
const HANDSHAKE_TIMEOUT_MS = 10_000;

/** In its asynchronous form createConnection returns nothing, so no request is written before the callback. */
export class PinnedAgent extends https.Agent {
  readonly #check: PinCheck;

  constructor(options: https.AgentOptions, check: PinCheck) {
    super({ ...options, rejectUnauthorized: false, maxCachedSessions: 0 });
    this.#check = check;
  }

  override createConnection(options: https.RequestOptions, created?: Created): undefined {
    const socket = tls.connect(options as tls.ConnectionOptions);
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
      socket.setTimeout(0);
      socket.off('timeout', tooSlow);
      socket.off('error', fail);
      const mismatch = this.#check(socket);
      if (mismatch) fail(mismatch);
      else created?.(null, socket);
    });
  }
}
