// The coherence of this instance: the hub, the commands and the link to other instances.
import { type Clock, systemClock } from './clock.js';
import { type Deliver, Hub, type WritesWithout } from './coherence/hub.js';
import { PendingInvalidations } from './coherence/pending-invalidations.js';
import { RedisCommands, type RedisCommandsOptions } from './redis/commands.js';
import { Member } from './link/member.js';

export interface RedisOptions extends Omit<RedisCommandsOptions, 'onState' | 'onClaimed' | 'clock'> {
  /** Maximum age of a fresh entry in memory while there is no lease (ms). */
  lostMaxAgeMs: number;
  writesWithout: WritesWithout;
}

interface InstanceDeps {
  redis?: RedisOptions | undefined;
  deliver: Deliver;
  /** Called when the state of Redis or of the lease may have changed. */
  onState: () => void;
  /** The clock of entries (ms since the epoch). */
  now: () => number;
  clock?: Clock | undefined;
}

export interface Instance {
  hub: Hub;
  commands?: RedisCommands;
  close: () => Promise<void>;
}

export function createInstance({
  redis,
  deliver,
  onState,
  now,
  clock = systemClock,
}: InstanceDeps): Instance {
  if (redis === undefined) {
    return { hub: new Hub({ now, deliver }), close: () => Promise.resolve() };
  }
  const pending = new PendingInvalidations();
  const commands: RedisCommands = new RedisCommands({
    ...redis,
    clock,
    // Entries under a prefix without an owner may be of another upstream.
    onClaimed: () => {
      pending.addAll();
    },
    onState(isUp) {
      if (isUp) void member.renewNow();
      onState();
    },
  });
  const member = new Member({ commands, clock, pending, deliver, onRenewed: onState });
  const { lostMaxAgeMs, writesWithout } = redis;
  const hub = new Hub({ now, deliver, remote: { member, pending, lostMaxAgeMs, writesWithout } });
  return {
    hub,
    commands,
    async close() {
      await member.close();
      await commands.close();
    },
  };
}
