// Channel subscriptions of a simulated Redis. Messages are sent in publication order.
import { ReplyError, type Reply, Status } from './redis-reply.js';

/** The server end of a connection. */
export interface Session {
  /** Name of the client process. */
  readonly name: string;
  message: (channel: string, text: string) => void;
}

type Loses = (session: Session, channel: string, text: string) => boolean;

/** Commands that a subscribed connection may send. */
const ALLOWED = new Set(['SUBSCRIBE', 'SSUBSCRIBE', 'UNSUBSCRIBE', 'SUNSUBSCRIBE', 'PING']);

export class Subscriptions {
  /** Sessions by channel. Keys of sharded channels start with "s", of other channels with "c". */
  readonly #listeners = new Map<string, Set<Session>>();
  readonly #counts = new Map<Session, number>();
  readonly #loses: Loses;

  constructor(loses: Loses) {
    this.#loses = loses;
  }

  /**
   * Runs a subscription command. A subscribed connection also gets replies to PING, and errors for all other
   * commands. Returns undefined if the command is not handled here.
   */
  execute(session: Session, name: string, channels: readonly string[]): Reply | undefined {
    if (!ALLOWED.has(name)) return this.#refusal(session, name);
    if (name === 'PING') return this.#counts.has(session) ? ['pong', channels[0] ?? ''] : undefined;
    if (channels.length === 0) {
      return new ReplyError(`ERR wrong number of arguments for '${name.toLowerCase()}' command`);
    }
    const prefix = name === 'SSUBSCRIBE' || name === 'SUNSUBSCRIBE' ? 's' : 'c';
    for (const channel of channels) {
      if (name.includes('UNSUB')) this.#leave(session, prefix + channel);
      else this.#join(session, prefix + channel);
    }
    return new Status(name.toLowerCase());
  }

  /** Publishes a message. @returns the number of receivers, including those whose message is lost */
  publish(channel: string, text: string, isSharded: boolean): number {
    const listeners = this.#listeners.get((isSharded ? 's' : 'c') + channel) ?? [];
    let count = 0;
    for (const session of listeners) {
      count++;
      if (!this.#loses(session, channel, text)) session.message(channel, text);
    }
    return count;
  }

  /** Removes a closed connection. */
  remove(session: Session): void {
    for (const channel of [...this.#listeners.keys()]) this.#leave(session, channel);
  }

  clear(): void {
    this.#listeners.clear();
    this.#counts.clear();
  }

  #refusal(session: Session, name: string): ReplyError | undefined {
    if (!this.#counts.has(session)) return undefined;
    const allowed = '(P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context';
    return new ReplyError(`ERR Can't execute '${name.toLowerCase()}': only ${allowed}`);
  }

  #join(session: Session, channel: string): void {
    const listeners = this.#listeners.get(channel) ?? new Set();
    this.#listeners.set(channel, listeners);
    if (listeners.has(session)) return;
    listeners.add(session);
    this.#counts.set(session, (this.#counts.get(session) ?? 0) + 1);
  }

  #leave(session: Session, channel: string): void {
    const listeners = this.#listeners.get(channel);
    if (!listeners?.delete(session)) return;
    if (listeners.size === 0) this.#listeners.delete(channel);
    const left = (this.#counts.get(session) ?? 1) - 1;
    if (left === 0) this.#counts.delete(session);
    else this.#counts.set(session, left);
  }
}
