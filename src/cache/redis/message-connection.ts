// A connection to one master for messages. Its replies arrive after all messages that were published before them.
import { once } from 'node:events';
import type { RedisConnections, RedisMaster } from './connections.js';
import type { Redis } from 'ioredis';

export interface Subscription {
  /** The name of its master, and the prefix of its channels. */
  readonly master: string;
  readonly prefix: string;
  subscribe: (channels: readonly string[]) => Promise<void>;
  ping: () => Promise<unknown>;
  close: () => void;
}

export interface SubscriptionEvents {
  onMessage: (channel: string, text: string) => void;
  /** Called when the connection is lost, or the server does not serve a channel any more. */
  onLost: () => void;
  /** Called with the connection before it is open. */
  watch: (connection: Redis) => void;
}

/** @throws Error when there is no connection */
export async function openSubscription(
  connections: RedisConnections,
  { master, prefix }: { master: RedisMaster; prefix: string },
  { onMessage, onLost, watch }: SubscriptionEvents,
): Promise<Subscription> {
  const connection = connections.openMessageConnection(master);
  watch(connection);
  connection.on(connections.isCluster ? 'smessage' : 'message', onMessage);
  try {
    await Promise.race([once(connection, 'ready'), closed(connection)]);
  } catch (error) {
    connection.disconnect();
    throw error;
  }
  connection.once('close', onLost);
  // ioredis reports an unexpected unsubscription as an error: the server does not serve a channel any more.
  connection.on('error', () => {
    connection.disconnect();
  });
  return {
    master: master.name,
    prefix,
    async subscribe(channels) {
      if (!connections.isCluster) await connection.subscribe(...channels);
      // All channels of one command have to be in one slot.
      else await Promise.all(channels.map((channel) => connection.ssubscribe(channel)));
    },
    ping: () => connection.ping(),
    close() {
      connection.off('close', onLost);
      connection.disconnect();
    },
  };
}

async function closed(connection: Redis): Promise<never> {
  await once(connection, 'close');
  throw new Error('the message connection was closed');
}
