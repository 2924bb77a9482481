// A Redis for a link: it answers scripts as the test sets, and records the order of the calls.
import { CHANGE, ENTER, RENEW, SYNC } from '../../src/cache/redis/coherence-scripts.js';
import type { LinkCommands } from '../../src/cache/redis/commands.js';
import type { Renewal } from '../../src/cache/link/member-list.js';

interface LinkWorld {
  /** The calls, in order. */
  asked: string[];
  was: Renewal['was'];
  lapsed: string[];
  /** Whether another member has a lease. */
  isVouched: boolean;
  /** Whether the list of members belongs to this run of the server. */
  isListKnown: boolean;
  /** Lease in the reply to each renewal: 0 none, 1 new, 2 long held. */
  leases: unknown[];
  /** Number of the last message of every group. */
  number: string;
  /** ID of the run of the server. */
  run: string;
  isConnected: boolean;
  hasFailed: boolean;
  /** Whether renewals get no reply. */
  isSilent: boolean;
  /** Resolves when replies to renewals arrive. Redis executes them immediately. */
  renewed: Promise<void>;
  /** Resolves when a newly opened message connection is ready. */
  ready: Promise<void>;
  /** Number of open message connections. */
  subscriptions: number;
  /** Resolves when the reply to a change arrives. Redis executes it immediately. */
  changed: Promise<void>;
  /** Delivers a message from another member. */
  send: (text: string) => void;
}

export function createLinkRedis(): { commands: LinkCommands; world: LinkWorld } {
  const world: LinkWorld = {
    asked: [],
    was: 'absent',
    lapsed: [],
    isVouched: true,
    isListKnown: false,
    leases: [],
    number: '1',
    run: 'run',
    isConnected: true,
    hasFailed: false,
    isSilent: false,
    renewed: Promise.resolve(),
    ready: Promise.resolve(),
    subscriptions: 0,
    changed: Promise.resolve(),
    send: () => undefined,
  };
  const answerTo: Record<string, (keys: readonly string[], args: readonly unknown[]) => unknown> = {
    [SYNC](keys) {
      world.asked.push('numbers');
      return keys.map(() => world.number);
    },
    [ENTER](_keys, [run, from]) {
      world.asked.push(`enter from ${String(from) || 'none'}`);
      return ['era', `era of ${String(run)}`];
    },
    [CHANGE]: () => world.changed.then(() => ['2', 0]),
    [RENEW](_keys, [, , , lease]) {
      world.leases.push(lease);
      if (world.isSilent) return new Promise(() => undefined);
      const { was, lapsed } = world;
      world.was = 'listed';
      const reply = [was, 1, lapsed, '0', 60_000, '0', world.isVouched ? 1 : 0];
      return world.renewed.then(() => reply);
    },
  };
  const names = new Map([
    [RENEW, 'renew'],
    [CHANGE, 'change'],
  ]);
  const openSubscription: LinkCommands['openSubscription'] = async (_master, _channels, { onMessage }) => {
    await world.ready;
    world.subscriptions++;
    world.send = (text) => {
      onMessage('t:messages', text);
    };
    return {
      ping() {
        world.asked.push('ping');
        return Promise.resolve();
      },
      close() {
        world.subscriptions--;
      },
    };
  };
  const commands = {
    isCluster: false,
    keyPrefix: 't:',
    channelPrefix: 't:',
    isConnected: () => world.isConnected,
    hasFailed: () => world.hasFailed,
    masters: () => [{ name: 'master' }],
    runOf: () => world.run,
    script(source: string, keys: readonly string[], args: readonly unknown[]) {
      const name = names.get(source);
      if (name !== undefined) world.asked.push(name);
      return Promise.resolve(answerTo[source]?.(keys, args));
    },
    command(name: string) {
      if (name === 'ZREM') world.asked.push('leave');
      return Promise.resolve(name === 'ZRANGE' && world.isListKnown ? [`run:${world.run}`, '0'] : []);
    },
    openSubscription,
    reportFailure(error: unknown) {
      world.asked.push(`failed: ${String(error)}`);
    },
    rediscover: () => undefined,
  } as unknown as LinkCommands;
  return { commands, world };
}
