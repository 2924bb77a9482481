// What coherence needs of Redis, so that a simulated one may be handed in.
import type { Argument } from './commands.js';
import type { RedisMaster } from './connections.js';
import type { Subscription, SubscriptionEvents } from './subscription.js';

/** All commands reject when Redis is away. */
export interface LinkCommands {
  readonly isCluster: boolean;
  readonly keyPrefix: string;
  readonly channelPrefix: string;
  /** Whether every master is connected, and the run of each is known. */
  isConnected: () => boolean;
  masters: () => RedisMaster[];
  runOf: (name: string) => string | undefined;
  script: (source: string, keys: readonly string[], args: readonly Argument[]) => Promise<unknown>;
  command: (name: string, ...args: Argument[]) => Promise<unknown>;
  openSubscription: (
    master: RedisMaster,
    events: Pick<SubscriptionEvents, 'onMessage' | 'onLost'>,
  ) => Promise<Subscription>;
  /** Why messages cannot be received. */
  failed: (error: unknown) => void;
  /** Looks for the masters anew. */
  lookAgain: () => void;
}
