// Subscriptions: this instance receives messages on one connection per master.
import type { LinkCommands } from './commands.js';
import type { RedisMaster, Subscription, SubscriptionEvents } from './connections.js';
import { type Channels, createChannels } from './namespace.js';

export class Subscriptions {
  readonly #commands: LinkCommands;
  readonly #member: string;
  readonly #onMessage: SubscriptionEvents['onMessage'];
  /** Subscriptions by the name of the master. */
  #open = new Map<string, Subscription>();
  /** Incremented by `open` and `close`: connections that an earlier `open` began are not kept. */
  #attempts = 0;
  #prefix: string;
  #channels: Channels;

  constructor(commands: LinkCommands, member: string, onMessage: SubscriptionEvents['onMessage']) {
    this.#commands = commands;
    this.#member = member;
    this.#onMessage = onMessage;
    this.#prefix = commands.channelPrefix;
    this.#channels = createChannels(this.#prefix, commands.isCluster);
  }

  get channels(): Channels {
    return this.#channels;
  }

  /** Whether there is a subscription at every current master. */
  isComplete(): boolean {
    const masters = this.#commands.masters();
    const isSame = this.#open.size === masters.length && this.#prefix === this.#commands.channelPrefix;
    return isSame && masters.every(({ name }) => this.#open.has(name));
  }

  /** @throws Error when a master cannot be subscribed to */
  async open(): Promise<void> {
    this.close();
    const attempt = this.#attempts;
    this.#prefix = this.#commands.channelPrefix;
    this.#channels = createChannels(this.#prefix, this.#commands.isCluster);
    const opening = this.#commands.masters().map((master) => this.#subscribe(master));
    try {
      const opened = await Promise.all(opening);
      if (attempt !== this.#attempts) throw new Error('closed before all connections were ready');
      this.#open = new Map(opened);
    } catch (error) {
      for (const each of await Promise.allSettled(opening))
        if (each.status === 'fulfilled') each.value[1].close();
      throw error;
    }
  }

  /** Settles when all messages published before it have been received. @throws Error when a connection is lost */
  async ping(): Promise<void> {
    if (!this.isComplete()) throw new Error('not subscribed to every master');
    await Promise.all([...this.#open.values()].map((subscription) => subscription.ping()));
  }

  /** Closes all connections, including those being opened. */
  close(): void {
    this.#attempts++;
    this.reset();
  }

  /** Called when messages were missed: closes the connections, and the next attempt opens all of them again. */
  readonly reset = (): void => {
    for (const subscription of this.#open.values()) subscription.close();
    this.#open.clear();
  };

  async #subscribe(master: RedisMaster): Promise<[name: string, Subscription]> {
    const channels = this.#channels.at(master, this.#member);
    const events = { onMessage: this.#onMessage, onLost: this.reset };
    return [master.name, await this.#commands.openSubscription(master, channels, events)];
  }
}
