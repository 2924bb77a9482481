// A fake Redis for a link. It returns the replies that the test sets, and records the calls.
import { CHANGE, ENTER, NOT_PERMITTED, RENEW, SYNC } from '../../src/cache/redis/coherence-scripts.js';
import type { RedisCommands } from '../../src/cache/redis/commands.js';
import { createChannels } from '../../src/cache/redis/namespace.js';
import type { Renewal } from '../../src/cache/link/member-list.js';

interface LinkWorld {
  /** Calls, in order. */
  asked: string[];
  was: Renewal['was'];
  lapsed: string[];
  /** Whether a different member has a lease. */
  isVouched: boolean;
  /** Whether the member list belongs to this server run. */
  isListKnown: boolean;
  isCluster: boolean;
  /** Age of the member list (ms). */
  listAgeMs: number;
  /** Creation time of the member list, by the Redis clock. */
  listCreatedAt: string;
  /** Lease in each renewal request: 0 for none, 1 for new, 2 for long-held. */
  leases: unknown[];
  /** The clock of Redis (ms). */
  redisTime: string;
  /** Send time in each renewal request, by the clock of Redis (ms); 0 if it is unknown. */
  sendTimes: unknown[];
  /** Last message number of every group. */
  number: string;
  /** ID of the server run. */
  run: string;
  /** Number of the era in this run. */
  era: number;
  isConnected: boolean;
  hasFailed: boolean;
  /** Whether renewals remain without a reply. */
  isSilent: boolean;
  /** Whether renewals are refused, because the user lacks a right. */
  isRefused: boolean;
  /** Delays the replies to renewals, which Redis executes immediately, until this promise resolves. */
  renewed: Promise<void>;
  /** Delays the readiness of new message connections until this promise resolves. */
  ready: Promise<void>;
  /** Number of open subscriptions. */
  subscriptions: number;
  /** Delays the reply to a change, which Redis executes immediately, until this promise resolves. */
  changed: Promise<void>;
  /** Delivers a message from a different member. */
  send: (text: string) => void;
  /** Loses the message connection. */
  lose: () => void;
}

export function createLinkRedis(): { commands: RedisCommands; world: LinkWorld } {
  const world: LinkWorld = {
    asked: [],
    was: 'absent',
    lapsed: [],
    isVouched: true,
    isListKnown: false,
    isCluster: false,
    listAgeMs: 60_000,
    listCreatedAt: '0',
    leases: [],
    redisTime: '0',
    sendTimes: [],
    number: '1',
    run: 'run',
    era: 0,
    isConnected: true,
    hasFailed: false,
    isSilent: false,
    isRefused: false,
    renewed: Promise.resolve(),
    ready: Promise.resolve(),
    subscriptions: 0,
    changed: Promise.resolve(),
    send: () => undefined,
    lose: () => undefined,
  };
  const answerTo: Record<string, (keys: readonly string[], args: readonly unknown[]) => unknown> = {
    [SYNC](keys) {
      world.asked.push('numbers');
      return keys.map(() => world.number);
    },
    [ENTER](_keys, [run, from]) {
      world.asked.push(`enter from ${String(from) || 'none'}`);
      return ['era', `era of ${String(run)}${world.era || ''}`];
    },
    [CHANGE]: () => world.changed.then(() => ['2', 0]),
    [RENEW](_keys, [, , , lease, , sendTime]) {
      world.leases.push(lease);
      world.sendTimes.push(sendTime);
      if (world.isSilent) return new Promise(() => undefined);
      if (world.isRefused)
        return world.renewed.then(() => Promise.reject(new Error(`${NOT_PERMITTED} HSET`)));
      const { was, lapsed, listCreatedAt, redisTime } = world;
      world.was = 'listed';
      const reply = [was, 1, lapsed, listCreatedAt, world.listAgeMs, redisTime, world.isVouched ? 1 : 0];
      return world.renewed.then(() => (was === 'late' ? ['late', 0, [], '0', 0, redisTime, 0] : reply));
    },
  };
  const names = new Map([
    [RENEW, 'renew'],
    [CHANGE, 'change'],
  ]);
  const openSubscription: RedisCommands['openSubscription'] = async (_master, _channels, events) => {
    await world.ready;
    world.subscriptions++;
    world.send = (text) => {
      events.onMessage('t:messages', text);
    };
    world.lose = events.onLost;
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
    get isCluster() {
      return world.isCluster;
    },
    keyPrefix: 't:',
    get channels() {
      return createChannels('t:', world.isCluster);
    },
    isConnected: () => world.isConnected,
    hasEverFailed: () => world.hasFailed,
    masters: () => [{ name: 'master', holds: () => true }],
    runOf: () => world.run,
    script(source: string, keys: readonly string[], args: readonly unknown[]) {
      const name = names.get(source);
      if (name !== undefined) world.asked.push(name);
      return Promise.resolve(answerTo[source]?.(keys, args));
    },
    command(name: string) {
      if (name === 'ZREM') world.asked.push('leave');
      if (name.endsWith('PUBLISH')) world.asked.push('acknowledge');
      return Promise.resolve(
        name === 'ZRANGE' && world.isListKnown ? [`run:${world.run}`, world.listCreatedAt] : [],
      );
    },
    openSubscription,
    reportFailure(error: unknown) {
      world.asked.push(`failed: ${String(error)}`);
    },
    rediscover: () => undefined,
    refreshSlots: () => Promise.resolve(),
  } as unknown as RedisCommands;
  return { commands, world };
}
