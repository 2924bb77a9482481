// A connection between a process and a simulated Redis: both ends and the bytes in flight.
import type { Network } from './network.js';
import { Pipe } from './pipe.js';
import type { Process } from './process.js';
import { ReplyError, type Reply, Status } from './redis-reply.js';
import type { RedisServer } from './redis.js';
import type { Session } from './redis-subscriptions.js';

type FromServer = { reply: Reply } | { channel: string; text: string } | 'end';

interface Asked {
  resolve: (reply: Reply) => void;
  reject: (error: Error) => void;
}

const closed = (): Error => new Error('Connection is closed.');

export class Connection implements Session {
  readonly name: string;
  readonly client: Process;
  readonly server: RedisServer;
  /** Called with each message. */
  onMessage: (channel: string, text: string) => void = () => undefined;
  /** Called once when the connection ends, except after `close`. */
  onClose: () => void = () => undefined;
  readonly #toServer: Pipe<readonly string[] | 'end'>;
  readonly #toClient: Pipe<FromServer>;
  readonly #asked: Asked[] = [];
  readonly #onGone: () => void;
  readonly #forgetKills: (() => void)[];
  #isOpenAtServer = true;
  #isOpenAtClient = true;

  constructor(network: Network, client: Process, server: RedisServer, onGone: () => void) {
    this.name = client.name;
    this.client = client;
    this.server = server;
    this.#onGone = onGone;
    const line = network.line(client, server);
    this.#toServer = new Pipe({
      network,
      line,
      receiver: server.host,
      label: `reads from ${client.name}`,
      extraMs: () => line.extraToServerMs,
      deliver: (item) => {
        this.#atServer(item);
      },
    });
    this.#toClient = new Pipe({
      network,
      line,
      receiver: client,
      label: `reads from ${server.host.name}`,
      extraMs: () => line.extraToClientMs,
      deliver: (item) => {
        this.#atClient(item);
      },
    });
    this.#forgetKills = [
      client.onKill(() => {
        this.#endAtClient();
        this.#toServer.send('end');
      }),
      server.host.onKill(() => {
        this.#endAtServer();
        this.#toClient.send('end');
      }),
    ];
  }

  get isOpen(): boolean {
    return this.#isOpenAtClient;
  }

  /** Sends a command. Rejects if the connection ends before the reply. */
  request(command: readonly string[]): Promise<Reply> {
    if (!this.#isOpenAtClient) return Promise.reject(closed());
    return new Promise((resolve, reject) => {
      this.#asked.push({ resolve, reject });
      this.#toServer.send(command);
    });
  }

  /** Closes the client end and rejects pending requests. */
  close(): void {
    this.onClose = () => undefined;
    this.#toServer.send('end');
    this.#endAtClient();
  }

  /** Resets the connection: both ends notice, and bytes in flight are lost. */
  reset(): void {
    this.#toServer.empty();
    this.#toClient.empty();
    this.#toServer.send('end');
    this.#toClient.send('end');
  }

  /** Breaks the connection at the server only. The client notices on its next send. */
  forgetAtServer(): void {
    this.#toClient.empty();
    this.#endAtServer();
  }

  message(channel: string, text: string): void {
    this.#toClient.send({ channel, text });
  }

  #atServer(command: readonly string[] | 'end'): void {
    if (command === 'end') {
      this.#endAtServer();
    } else if (this.#isOpenAtServer) {
      const reply = this.server.execute(this, command);
      this.server.host.note(`runs for ${this.name}: ${command.join(' ')} -> ${textOf(reply)}`);
      this.#toClient.send({ reply });
    } else {
      this.#toClient.send('end');
    }
  }

  #atClient(item: FromServer): void {
    if (!this.#isOpenAtClient) return;
    if (item === 'end') this.#endAtClient();
    else if ('reply' in item) this.#asked.shift()?.resolve(item.reply);
    else this.onMessage(item.channel, item.text);
  }

  #endAtServer(): void {
    this.#isOpenAtServer = false;
    this.server.subscriptions.remove(this);
    this.#leaveIfEnded();
  }

  #endAtClient(): void {
    if (!this.#isOpenAtClient) return;
    this.#isOpenAtClient = false;
    this.#toClient.close();
    if (this.client.isAlive) {
      for (const { reject } of this.#asked.splice(0)) reject(closed());
      this.onClose();
    }
    this.#leaveIfEnded();
  }

  #leaveIfEnded(): void {
    if (this.#isOpenAtServer || this.#isOpenAtClient) return;
    for (const forget of this.#forgetKills) forget();
    this.#onGone();
  }
}

function textOf(reply: Reply): string {
  if (Array.isArray(reply)) return `[${reply.map(textOf).join(' ')}]`;
  if (reply instanceof Status) return reply.text;
  return reply instanceof ReplyError ? reply.message : String(reply);
}
