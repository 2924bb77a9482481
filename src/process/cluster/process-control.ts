// The workers as the operator's calls see them: asked by message, answered by message.
import type { Member } from '../../admin/operations.js';
import type { Down, Up } from './messages.js';
import { Pending } from './pending-requests.js';

const QUICK_MS = 1000;
/** Ten thousand handles, and a Redis that takes its time. */
const PURGE_MS = 15_000;

type Reply = Extract<Up, { kind: 'reply' }>;

/** The primary's side. */
export class Calls {
  readonly #pending = new Pending<Reply>();

  memberOf(send: (message: Down) => void): Member {
    const call = async <T>(name: keyof Member, argument: unknown, timeoutMs = QUICK_MS): Promise<T> => {
      const reply = await this.#pending.ask(timeoutMs, (id) => {
        send({ kind: 'call', id, name, argument });
      });
      if (reply === undefined) throw new Error(`a worker did not answer in time (${name})`);
      if (reply.failure !== undefined) throw new Error(reply.failure);
      return reply.value as T;
    };
    return {
      purge: (order) => call('purge', order, PURGE_MS),
      look: (handle) => call('look', handle),
      report: () => call('report', undefined),
      setLogLevel: (level) => call('setLogLevel', level),
      metrics: () => call('metrics', undefined),
    };
  }

  settle(reply: Reply): void {
    this.#pending.settle(reply.id, reply);
  }
}

/** The worker's side. A value that cannot be sent is a failure too. */
export async function answerCall(
  member: Member,
  { id, name, argument }: Extract<Down, { kind: 'call' }>,
  send: (reply: Reply) => void,
): Promise<void> {
  try {
    const perform = member[name] as (argument: unknown) => Promise<unknown>;
    send({ kind: 'reply', id, value: await perform(argument) });
  } catch (error) {
    send({ kind: 'reply', id, failure: error instanceof Error ? error.message : String(error) });
  }
}
