// Subscriptions: this instance receives messages on one connection per master.
import type { RedisMaster } from '../redis/connections.js';
import type { LinkCommands } from '../redis/commands.js';
import { type Channels, createChannels } from '../redis/namespace.js';
import type { Subscription } from '../redis/message-connection.js';

interface SubscriptionsDeps {
  commands: LinkCommands;
  /** This member. */
  id: string;
  onChange: (text: string) => void;
  onAcknowledgement: (text: string) => void;
}

export class Subscriptions {
  readonly #deps: SubscriptionsDeps;
  #open: Subscription[] = [];
  /** Counts what `open` and `close` begin: connections that are ready after that are not kept. */
  #attempts = 0;
  #channels: Channels;

  constructor(deps: SubscriptionsDeps) {
    this.#deps = deps;
    this.#channels = this.#newChannels();
  }

  get channels(): Channels {
    return this.#channels;
  }

  /** Whether there is a subscription at every current master. */
  isComplete(): boolean {
    const { commands } = this.#deps;
    const names = commands.masters().map(({ name }) => name);
    return (
      this.#open.length === names.length &&
      this.#open.every(({ master, prefix }) => names.includes(master) && prefix === commands.channelPrefix)
    );
  }

  /** @throws Error when a master cannot be subscribed to */
  async open(): Promise<void> {
    this.close();
    const attempt = this.#attempts;
    this.#channels = this.#newChannels();
    const opening = this.#deps.commands.masters().map((master) => this.#subscribe(master));
    try {
      const opened = await Promise.all(opening);
      if (attempt !== this.#attempts) throw new Error('closed before all connections were ready');
      this.#open = opened;
    } catch (error) {
      for (const each of await Promise.allSettled(opening))
        if (each.status === 'fulfilled') each.value.close();
      throw error;
    }
  }

  /** Settles when all messages published before it have been received. @throws Error when a connection is lost */
  async ping(): Promise<void> {
    if (!this.isComplete()) throw new Error('not subscribed to every master');
    await Promise.all(this.#open.map((subscription) => subscription.ping()));
  }

  /** Those that are being opened, too. */
  close(): void {
    this.#attempts++;
    this.reset();
  }

  /** Messages were missed: the next attempt opens all connections again. */
  readonly reset = (): void => {
    for (const subscription of this.#open) subscription.close();
    this.#open = [];
  };

  #newChannels(): Channels {
    const { channelPrefix, isCluster } = this.#deps.commands;
    return createChannels(channelPrefix, isCluster);
  }

  async #subscribe(master: RedisMaster): Promise<Subscription> {
    const { commands, id, onChange, onAcknowledgement } = this.#deps;
    const ofMember = this.#channels.ofMember(id);
    const subscription = await commands.openSubscription(master, {
      onMessage: (channel, text) => {
        if (channel === ofMember) onAcknowledgement(text);
        else onChange(text);
      },
      onLost: this.reset,
    });
    try {
      await subscription.subscribe(this.#channels.at(master, id));
    } catch (error) {
      subscription.close();
      throw error;
    }
    return subscription;
  }
}
