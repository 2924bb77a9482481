// Sends one caller's request to the Handle server and reads what it answers.
import type { Dispatcher } from 'undici';
import { ServiceError } from '../errors.js';
import { handleToPath, recordKey } from '../handle/handle.js';
import { readBody } from './body.js';
import { neverReached, toServiceError } from './failure.js';
import { type Gate, callerKey } from './concurrency-limiter.js';
import { type RecordAnswer, readAnswer } from './record-answer.js';
import { retryOnFresh } from './retry.js';
import { withSignal } from './time-limit.js';

export interface SenderOptions {
  url: string;
  /** Our own name in `Via` (RFC 9110 §7.6.3). */
  pseudonym: string;
  timeoutMs: number;
  writeTimeoutMs: number;
  maxBodyBytes: number;
  caseSensitive: boolean;
  gate: Pick<Gate, 'run'>;
  dispatcher: Dispatcher;
  freshDispatcher: Dispatcher;
}

export interface Sent {
  method: 'GET' | 'PUT' | 'DELETE';
  /** Undefined for the collection. */
  handle?: string;
  query: string;
  authorization: string | undefined;
  body?: string;
}

export interface Sender {
  /** Tries once more on a fresh connection when the connection was at fault. */
  read: (sent: Omit<Sent, 'method'>) => Promise<RecordAnswer>;
  /** Never sent twice: the first may have been carried out. */
  write: (sent: Sent) => Promise<RecordAnswer>;
}

export function createSender(options: SenderOptions): Sender {
  const { gate, timeoutMs, writeTimeoutMs, caseSensitive } = options;
  const keyOf = ({ handle, authorization }: Pick<Sent, 'handle' | 'authorization'>): string | undefined =>
    handle === undefined ? undefined : callerKey(recordKey(handle, caseSensitive), authorization);

  async function send(sent: Sent, dispatcher: Dispatcher, signal: AbortSignal): Promise<RecordAnswer> {
    const { handle } = sent;
    const init = { ...requestOf(sent, options.pseudonym), signal, dispatcher } as unknown as RequestInit;
    const path = handle === undefined ? '' : `/${handleToPath(handle)}`;
    const url = `${options.url.replace(/\/+$/, '')}/api/handles${path}${sent.query}`;
    try {
      const response = await globalThis.fetch(url, init);
      const { status, headers } = response;
      const body = await readBody(response, options.maxBodyBytes);
      return readAnswer({ status, headers, body, handle, caseSensitive });
    } catch (error) {
      throw toServiceError(error);
    }
  }

  return {
    read: (sent) =>
      gate.run(
        () =>
          withSignal({ timeoutMs }, (limit) =>
            retryOnFresh((fresh) =>
              send({ method: 'GET', ...sent }, fresh ? options.freshDispatcher : options.dispatcher, limit),
            ),
          ),
        keyOf(sent),
      ),
    async write(sent) {
      try {
        return await gate.run(
          () => withSignal({ timeoutMs: writeTimeoutMs }, (limit) => send(sent, options.dispatcher, limit)),
          keyOf(sent),
        );
      } catch (error) {
        if (neverReached(error)) throw new ServiceError('UPSTREAM_REFUSED', { cause: error });
        throw error;
      }
    },
  };
}

/** Everything that is sent: of the caller nothing but the login, and what is to be written. */
function requestOf({ method, authorization, body }: Sent, pseudonym: string): RequestInit {
  return {
    method,
    headers: {
      accept: 'application/json',
      'user-agent': 'handle-resolver-proxy',
      via: `1.1 ${pseudonym}`,
      ...(authorization === undefined ? {} : { authorization }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body }),
    redirect: 'manual',
  };
}
