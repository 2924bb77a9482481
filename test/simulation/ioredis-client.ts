// Simulates ioredis for the code under test: reconnection, ready check, and command timeouts.
import { EventEmitter } from 'node:events';
import { untilDeadline } from '../../src/clock.js';
import { reconnectDelayMs } from '../../src/cache/redis/connections.js';
import type { Connection } from './connection.js';
import type { Network } from './network.js';
import type { Process } from './process.js';
import { type Argument, toBytes } from './redis-client.js';
import { ReplyError, type Reply, Status } from './redis-reply.js';
import type { RedisServer } from './redis.js';

export interface IoredisDeps {
  network: Network;
  process: Process;
  /** Returns the current master. */
  findServer: () => RedisServer;
  /** Command timeout, starting when the command is sent. */
  commandTimeoutMs: number;
}

const CONNECT_TIMEOUT_MS = 2000;
const notReady = (): Error =>
  new Error("Stream isn't writeable and enableOfflineQueue options is set to false");

export class IoredisClient extends EventEmitter {
  status: 'connecting' | 'connect' | 'ready' | 'reconnecting' | 'end' = 'connecting';
  readonly #deps: IoredisDeps;
  /** Whether this is a command connection, which reconnects. A message connection is opened only once. */
  readonly #isForCommands: boolean;
  #connection: Connection | undefined;
  #messageEvent: 'message' | 'smessage' = 'message';
  #attempts = 0;
  /** Number of the connection attempt. Events from earlier attempts are ignored. */
  #number = 0;

  constructor(deps: IoredisDeps, use: 'commands' | 'messages') {
    super();
    this.#deps = deps;
    this.#isForCommands = use === 'commands';
    void this.connect();
  }

  async connect(): Promise<void> {
    const { network, process, findServer } = this.#deps;
    const number = ++this.#number;
    this.status = 'connecting';
    const opening = network.connect(process, findServer());
    void opening.then(
      (late) => {
        if (number !== this.#number) late.close();
      },
      () => undefined,
    );
    try {
      const connection = await untilDeadline(opening, CONNECT_TIMEOUT_MS, notReady, process.clock);
      if (number !== this.#number) return;
      this.#use(connection);
      await this.#request(['INFO']);
      if (number !== this.#number) return;
      this.#attempts = 0;
      this.status = 'ready';
      this.emit('ready');
    } catch (error) {
      if (number === this.#number) this.#failed(error);
    }
  }

  disconnect(reconnects = false): void {
    if (this.status === 'end') return;
    this.#connection?.close();
    this.#closed(reconnects);
  }

  quit(): Promise<unknown> {
    return this.#command(['QUIT']);
  }

  ping(): Promise<unknown> {
    return this.#command(['PING']);
  }

  info(): Promise<unknown> {
    return this.#command(['INFO']);
  }

  call(name: string, ...args: Argument[]): Promise<unknown> {
    return this.#command([name, ...args]);
  }

  evalsha(digest: string, count: number, ...args: Argument[]): Promise<unknown> {
    return this.#command(['EVALSHA', digest, count, ...args]);
  }

  eval(source: string, count: number, ...args: Argument[]): Promise<unknown> {
    return this.#command(['EVAL', source, count, ...args]);
  }

  hmget(key: string, ...fields: string[]): Promise<unknown> {
    return this.#command(['HMGET', key, ...fields]);
  }

  mgetBuffer(...keys: string[]): Promise<unknown> {
    return this.#command(['MGET', ...keys], toBuffers);
  }

  xread(...args: Argument[]): Promise<unknown> {
    return this.#command(['XREAD', ...args]);
  }

  xrevrange(...args: Argument[]): Promise<unknown> {
    return this.#command(['XREVRANGE', ...args]);
  }

  subscribe(...channels: string[]): Promise<unknown> {
    return this.#command(['SUBSCRIBE', ...channels]);
  }

  ssubscribe(...channels: string[]): Promise<unknown> {
    this.#messageEvent = 'smessage';
    return this.#command(['SSUBSCRIBE', ...channels]);
  }

  async #command(args: Argument[], convert = toTexts): Promise<unknown> {
    if (this.status !== 'ready') throw notReady();
    return convert(await this.#request(args.map(toBytes)));
  }

  async #request(command: string[]): Promise<Reply> {
    const { process, commandTimeoutMs } = this.#deps;
    if (this.#connection === undefined) throw notReady();
    const late = (): Error => new Error('Command timed out');
    const asked = this.#connection.request(command);
    const reply = await untilDeadline(asked, commandTimeoutMs, late, process.clock);
    if (!(reply instanceof ReplyError)) return reply;
    if (reply.message.startsWith('READONLY')) this.disconnect(true);
    throw reply;
  }

  #use(connection: Connection): void {
    this.#connection = connection;
    this.status = 'connect';
    connection.onClose = () => {
      this.#closed(this.#isForCommands);
    };
    connection.onMessage = (channel, text) => {
      this.emit(this.#messageEvent, channel, Buffer.from(text, 'latin1').toString());
    };
  }

  #failed(error: unknown): void {
    this.#connection?.close();
    if (this.listenerCount('error') > 0) this.emit('error', error);
    this.#closed(this.#isForCommands);
  }

  #closed(reconnects: boolean): void {
    const number = ++this.#number;
    this.#connection = undefined;
    this.status = reconnects ? 'reconnecting' : 'end';
    this.#deps.process.post(0, 'closed', () => this.emit('close'));
    if (!reconnects) return;
    this.#deps.process.clock.after(reconnectDelayMs(++this.#attempts), () => {
      if (number === this.#number) void this.connect();
    });
  }
}

function toTexts(reply: Reply): unknown {
  if (typeof reply === 'string') return Buffer.from(reply, 'latin1').toString();
  if (reply instanceof Status) return reply.text;
  return Array.isArray(reply) ? reply.map(toTexts) : reply;
}

function toBuffers(reply: Reply): unknown {
  if (typeof reply === 'string') return Buffer.from(reply, 'latin1');
  return Array.isArray(reply) ? reply.map(toBuffers) : reply;
}
