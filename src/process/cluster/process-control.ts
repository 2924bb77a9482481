// Operators' calls to the workers, from the primary by message.
import type { ProcessControl } from '../../admin/operations.js';
import { ServiceError } from '../../errors.js';
import { type ControlMessage, type WorkerMessage, packFailure, unpackFailure } from './messages.js';
import { PendingRequests } from './pending-requests.js';

const CALL_TIMEOUT_MS = 1000;
/** For ten thousand handles and a slow Redis. */
const PURGE_TIMEOUT_MS = 15_000;

/** For a page of records in a busy process. */
const TRANSFER_TIMEOUT_MS = 15_000;

type CallReply = Extract<WorkerMessage, { kind: 'call-reply' }>;

/** The primary's side. */
export class WorkerCalls {
  readonly #pending = new PendingRequests<CallReply>();

  controlOf(send: (message: ControlMessage) => void): ProcessControl {
    const call = async <T>(
      name: keyof ProcessControl,
      argument: unknown,
      timeoutMs = CALL_TIMEOUT_MS,
    ): Promise<T> => {
      const reply = await this.#pending.request(timeoutMs, (id) => {
        send({ kind: 'call', id, name, argument });
      });
      if (reply === undefined) throw new Error(`worker did not reply in time (${name})`);
      const { failure } = reply;
      if (failure !== undefined)
        throw typeof failure === 'string' ? new Error(failure) : unpackFailure(failure);
      return reply.value as T;
    };
    return {
      purge: (request) => call('purge', request, PURGE_TIMEOUT_MS),
      inspect: (handle) => call('inspect', handle),
      report: () => call('report', undefined),
      traffic: () => call('traffic', undefined),
      unblock: (network) => call('unblock', network),
      setLogLevel: (level) => call('setLogLevel', level),
      importLines: (text) => call('importLines', text, TRANSFER_TIMEOUT_MS),
      exportPage: (page) => call('exportPage', page, TRANSFER_TIMEOUT_MS),
      metrics: () => call('metrics', undefined),
    };
  }

  settle(reply: CallReply): void {
    this.#pending.settle(reply.id, reply);
  }
}

/** The worker's side. A value that cannot be serialised is a failure of the call. */
export async function answerCall(
  control: ProcessControl,
  { id, name, argument }: Extract<ControlMessage, { kind: 'call' }>,
  send: (reply: CallReply) => void,
): Promise<void> {
  try {
    const perform = control[name] as (argument: unknown) => Promise<unknown>;
    send({ kind: 'call-reply', id, value: await perform(argument) });
  } catch (error) {
    const unexpected = error instanceof Error ? error.message : String(error);
    const failure = error instanceof ServiceError ? packFailure(error) : unexpected;
    send({ kind: 'call-reply', id, failure });
  }
}
