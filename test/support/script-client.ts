// Runs the coherence scripts on a real Redis without a link: no lease, and a fixed clock.
import { type Clock, systemClock } from '../../src/clock.js';
import { partial } from './partial.js';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach } from 'vitest';
import { Bans } from '../../src/cache/coherence/bans.js';
import type { Change } from '../../src/cache/coherence/message.js';
import { type Entry, RUN_LENGTH } from '../../src/cache/entry.js';
import { TICKET } from '../../src/cache/redis/coherence-scripts.js';
import { createChannels } from '../../src/cache/redis/namespace.js';
import { enterEra, publishChange, readNumbers } from '../../src/cache/redis/group-states.js';
import type { RedisCommands } from '../../src/cache/redis/commands.js';
import { MemberList, type Renewal } from '../../src/cache/link/member-list.js';
import { RedisStore } from '../../src/cache/redis/store.js';
import type { RedisTicket } from '../../src/cache/store.js';
import { type RedisServer, describeWithRedis, startRedis } from './redis-server.js';
import { NOW } from './store-contract.js';

export const PREFIX = 'test:';
/** Time of all scripts, a minute after the entries were loaded. */
export const SCRIPTS_NOW = NOW + 60_000;
/** Fence lifetime, longer than any stall of a busy machine. */
export const FENCE_MS = 60_000;

/** Returns a run ID of the required length. */
export const runNamed = (name: string): string => name.padEnd(RUN_LENGTH, '0');

export interface ScriptClient {
  commands: RedisCommands;
  store: RedisStore;
  bans: Bans;
  /** The server run ID that this client assumes. */
  run: string;
  publish: (change: Change) => Promise<number>;
  change: (change: Change) => ReturnType<typeof publishChange>;
  enter: (known: string, next: string) => ReturnType<typeof enterEra>;
  put: (key: string, entry: Entry) => Promise<boolean | undefined>;
  ticket: (key: string) => Promise<RedisTicket>;
  read: (key: string) => Promise<Entry | undefined>;
  members: (
    id: string,
    clock?: Clock,
  ) => Pick<MemberList, 'others' | 'markLeaseEnded' | 'expel' | 'leave'> & {
    renew: (how?: Partial<Parameters<MemberList['renew']>[0]>) => Promise<Renewal & { count: number }>;
  };
}

export function createScriptClient(client: Redis): ScriptClient {
  const bans = new Bans(runNamed('this'));
  const channels = createChannels(PREFIX, false);
  let redisTime: unknown;
  const commands = partial<RedisCommands>({
    isCluster: false,
    keyPrefix: PREFIX,
    channels,
    isUp: () => true,
    membersName: `${PREFIX}members`,
    runOf: () => made.run,
    async script(source, keys, args) {
      const reply = await client.eval(source, keys.length, ...keys, ...args);
      // The clock of Redis stands still as well, so that entries are read with the times that they were given.
      if (source === TICKET) (reply as unknown[])[3] = redisTime ??= (reply as unknown[])[3];
      return reply;
    },
    command: (name, ...args) => client.call(name, ...args),
    run: <T>(_name: string, command: (redis: Redis) => Promise<T>) => command(client),
  });
  const store = new RedisStore({
    commands,
    bans: () => (bans.run === made.run ? bans : new Bans(made.run)),
    isLinked: () => true,
    now: () => SCRIPTS_NOW,
  });
  const made: ScriptClient = {
    commands,
    store,
    bans,
    run: runNamed('this'),
    publish: async (change) => (await made.change(change)).seq,
    change: (change) => publishChange(commands, channels, { change, member: 'me', call: '' }),
    enter: (known, next) => enterEra(commands, channels, { member: 'me', known, next }),
    put: async (key, entry) => store.set(key, entry, (await store.get(key)).ticket),
    ticket: async (key) => (await store.get(key)).ticket,
    read: async (key) => (await store.get(key)).entry,
    members: (id, clock = systemClock) => {
      const members = new MemberList(commands, clock, id);
      return {
        async renew(how) {
          const renewed = await members.renew({ joins: true, lease: 'none', ...how });
          return { ...renewed, count: members.count };
        },
        others: () => members.others(),
        expel: (ids) => members.expel(ids),
        markLeaseEnded: (other, end) => {
          members.markLeaseEnded(other, end);
        },
        leave: () => members.leave(),
      };
    },
  };
  return made;
}

export interface ScriptWorld {
  redis: RedisServer;
  client: Redis;
  scripts: ScriptClient;
}

/** Defines tests on a Redis that contains only the states of all groups. */
export function describeScripts(name: string, suite: (world: ScriptWorld) => void): void {
  describeWithRedis(name, () => {
    const world = {} as ScriptWorld;
    beforeAll(async () => {
      world.redis = await startRedis(['--maxmemory-policy', 'noeviction']);
      world.client = new Redis(world.redis.url, { protocol: 2 });
    });
    afterAll(async () => {
      world.client.disconnect();
      await world.redis.stop();
    });
    beforeEach(async () => {
      await world.client.config('SET', 'maxmemory', '0');
      await world.client.flushall();
      world.scripts = createScriptClient(world.client);
      await readNumbers(world.scripts.commands);
    });
    suite(world);
  });
}
