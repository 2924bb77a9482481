// The Redis subscriptions of this instance, on one message connection per master.
import type { RedisCommands } from './commands.js';
import type { RedisMaster, Subscription, SubscriptionEvents } from './connections.js';
import type { Channels } from './namespace.js';

export class Subscriptions {
  #open = new Map<string, Subscription>();
  /** Incremented by `open` and `close`, so that an outdated `open` discards its connections. */
  #attempts = 0;
  channels: Channels;

  constructor(
    private readonly commands: RedisCommands,
    private readonly member: string,
    private readonly onMessage: SubscriptionEvents['onMessage'],
  ) {
    this.channels = commands.channels;
  }

  /** Whether every current master has a subscription. */
  isComplete(): boolean {
    const masters = this.commands.masters();
    const isSame =
      this.#open.size === masters.length && this.channels.prefix === this.commands.channels.prefix;
    return isSame && masters.every(({ name }) => this.#open.has(name));
  }

  async open(): Promise<void> {
    this.close();
    const attempt = this.#attempts;
    // While slots move, a channel that moved since the last periodic refresh would fail each attempt.
    if (this.commands.isCluster) await this.commands.refreshSlots();
    this.channels = this.commands.channels;
    const opening = this.commands.masters().map((master) => this.#subscribe(master));
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

  /** Resolves once all earlier messages have been received. @throws Error when a connection is lost */
  async ping(): Promise<void> {
    if (!this.isComplete()) throw new Error('not subscribed to every master');
    await Promise.all([...this.#open.values()].map((subscription) => subscription.ping()));
  }

  /** Closes all connections, including those being opened. */
  close(): void {
    this.#attempts++;
    this.reset();
  }

  /** Closes the open connections after a missed message or a lost connection; the next renewal opens new ones. */
  readonly reset = (): void => {
    for (const subscription of this.#open.values()) subscription.close();
    this.#open.clear();
  };

  async #subscribe(master: RedisMaster): Promise<[name: string, Subscription]> {
    const channels = this.channels.at(master, this.member);
    const events = { onMessage: this.onMessage, onLost: this.reset };
    return [master.name, await this.commands.openSubscription(master, channels, events)];
  }
}
