// The Redis interface for the code under test: command connections, message connections, and a dialer.
import { createHash } from 'node:crypto';
import type { Connection } from './connection.js';
import type { Network } from './network.js';
import type { Process } from './process.js';
import { ReplyError, type Reply, Status } from './redis-reply.js';
import type { RedisServer } from './redis.js';

export type Argument = string | number | Uint8Array;

/**
 * Bulk replies are Buffers, statuses such as OK are strings, nil is null. Errors inside an array stay errors.
 */
export type Answer = Buffer | number | string | null | ReplyError | Answer[];

export interface RedisCommands {
  /** Rejects with a ReplyError, or with a different Error if the connection ends before the reply. */
  command: (name: string, ...args: readonly Argument[]) => Promise<Answer>;
  /** Runs a script by EVALSHA, or by EVAL if the server does not know the script. */
  script: (source: string, keys: readonly string[], args: readonly Argument[]) => Promise<Answer>;
  /** Called when the connection ends, except after `close`. */
  onClose: () => void;
  close: () => void;
}

export interface RedisSubscription {
  subscribe: (channels: readonly string[]) => Promise<void>;
  /** Subscribes to channels in the cluster slot of this server. */
  subscribeSharded: (channels: readonly string[]) => Promise<void>;
  /** Resolves after all messages published earlier have arrived. */
  ping: () => Promise<void>;
  onMessage: (channel: string, text: string) => void;
  onClose: () => void;
  close: () => void;
}

/** Opens connections to the current server. Rejects if the server refuses. */
export interface RedisDialer {
  commands: () => Promise<RedisCommands>;
  subscription: () => Promise<RedisSubscription>;
}

export function dialer(network: Network, client: Process, findServer: () => RedisServer): RedisDialer {
  return {
    commands: async () => new CommandClient(await network.connect(client, findServer())),
    subscription: async () => new SubscriptionClient(await network.connect(client, findServer())),
  };
}

class Client {
  onClose: () => void = () => undefined;
  protected readonly connection: Connection;

  constructor(connection: Connection) {
    this.connection = connection;
    connection.onClose = () => {
      this.onClose();
    };
  }

  close(): void {
    this.connection.close();
  }

  /** Sends a command. @throws ReplyError for an error reply */
  protected async ask(args: readonly Argument[]): Promise<Answer> {
    const reply = await this.connection.request(args.map(toBytes));
    if (reply instanceof ReplyError) throw reply;
    return toAnswer(reply);
  }
}

class CommandClient extends Client implements RedisCommands {
  command(name: string, ...args: readonly Argument[]): Promise<Answer> {
    return this.ask([name, ...args]);
  }

  async script(source: string, keys: readonly string[], args: readonly Argument[]): Promise<Answer> {
    const rest = [keys.length, ...keys, ...args];
    try {
      return await this.ask(['EVALSHA', shaOf(source), ...rest]);
    } catch (error) {
      if (!(error instanceof ReplyError) || !error.message.startsWith('NOSCRIPT')) throw error;
      return await this.ask(['EVAL', source, ...rest]);
    }
  }
}

class SubscriptionClient extends Client implements RedisSubscription {
  onMessage: (channel: string, text: string) => void = () => undefined;

  constructor(connection: Connection) {
    super(connection);
    connection.onMessage = (channel, text) => {
      this.onMessage(fromBytes(channel), fromBytes(text));
    };
  }

  async subscribe(channels: readonly string[]): Promise<void> {
    await this.ask(['SUBSCRIBE', ...channels]);
  }

  async subscribeSharded(channels: readonly string[]): Promise<void> {
    await this.ask(['SSUBSCRIBE', ...channels]);
  }

  async ping(): Promise<void> {
    await this.ask(['PING']);
  }
}

const shas = new Map<string, string>();

function shaOf(source: string): string {
  const sha = shas.get(source) ?? createHash('sha1').update(source).digest('hex');
  shas.set(source, sha);
  return sha;
}

const ASCII = /^[\x00-\x7f]*$/;

/** Encodes an argument for the simulated Redis as one character per byte. */
export function toBytes(argument: Argument): string {
  if (typeof argument === 'number') return String(argument);
  if (typeof argument === 'string' && ASCII.test(argument)) return argument;
  return Buffer.from(argument as string | Uint8Array<ArrayBuffer>).toString('latin1');
}

function fromBytes(bytes: string): string {
  return ASCII.test(bytes) ? bytes : Buffer.from(bytes, 'latin1').toString();
}

export function toAnswer(reply: Reply): Answer {
  if (typeof reply === 'string') return Buffer.from(reply, 'latin1');
  if (reply instanceof Status) return reply.text;
  return Array.isArray(reply) ? reply.map(toAnswer) : reply;
}
