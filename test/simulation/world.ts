// The simulation of a deployment: instances, Redis, upstream, and the guarantees.
import { groupOf } from '../../src/cache/coherence/groups.js';
import type { DisconnectedWrites } from '../../src/cache/link/hub.js';
import { handleRef } from '../../src/handle/handle.js';
import { ChangeFeed } from './change-feed.js';
import { ConditionalWrites } from './conditional-writes.js';
import { FrontCache } from './front-cache.js';
import { History } from './history.js';
import { Instance } from './instance.js';
import { Random } from './random.js';
import type { Keyspace } from './redis-keyspace.js';
import type { RedisServer } from './redis.js';
import { Requests } from './requests.js';
import { Simulation } from './simulation.js';
import { PREFIX, Upstream } from './upstream.js';
import type { Violation } from './violation.js';

export interface WorldOptions {
  instances: number;
  disconnectedWrites: DisconnectedWrites;
  disconnectedMaxAgeMs: number;
  commandTimeoutMs: number;
  /** Whether Redis is a cluster, of one master. The loss of its member list is that of a second master. */
  isCluster?: boolean;
  /** Whether instances have a change feed and a mirror. */
  hasPlugins?: boolean;
  /** Whether a cache in front stores responses of all instances. */
  hasFront?: boolean;
  /** Whether states, bans and pending invalidations are few, so that the oldest are often dropped. */
  hasLowLimits?: boolean;
  /** Whether only the Handle server and the way to it fail. */
  keepsRedis?: boolean;
  keptLines: number;
}

const HANDLE_PAIRS = 3;

export class World {
  readonly random: Random;
  readonly simulation: Simulation;
  readonly options: WorldOptions;
  readonly upstream: Upstream;
  readonly instances: Instance[];
  readonly handles: readonly string[] = handlesInPairs();
  readonly history = new History();
  /** The versions of acknowledged writes and purges, which delete the older record: no list and no stale answer has it. */
  readonly strict = new History();
  readonly changes: ChangeFeed | undefined;
  readonly front: FrontCache | undefined;
  readonly requests: Requests;
  readonly conditional: ConditionalWrites;
  /** The first violated invariant. */
  violation: Violation | undefined;
  /** Probability of losing a message to a process, by process name. */
  readonly losses = new Map<string, number>();
  redis: RedisServer;
  /** Virtual time at which a former master last returned. */
  returnedAt = -Infinity;
  /** Virtual time at which Redis last lost the member list. */
  membersLostAt = -Infinity;
  #masters = 0;

  private constructor(simulation: Simulation, options: WorldOptions) {
    this.simulation = simulation;
    this.random = simulation.random.stream('world');
    this.options = options;
    this.upstream = new Upstream(simulation.scheduler, simulation.random, this.handles);
    this.changes = options.hasPlugins ? new ChangeFeed(this) : undefined;
    this.front = options.hasFront ? new FrontCache(this) : undefined;
    this.requests = new Requests(this);
    this.conditional = new ConditionalWrites(this);
    this.redis = this.#newMaster();
    this.instances = Array.from({ length: options.instances }, (_, at) => this.#newInstance(at));
  }

  static async create(seed: number, choose: (random: Random) => WorldOptions): Promise<World> {
    const options = choose(new Random(seed).stream('options'));
    const simulation = await Simulation.create(seed, { keptLines: options.keptLines });
    return new World(simulation, options);
  }

  get now(): number {
    return this.simulation.scheduler.now;
  }

  /** Promotes a replica to master, with its data. New connections use the new master. */
  promote(held: Keyspace): void {
    this.redis = this.#newMaster(held);
    this.losesMembers();
  }

  /** Notes that Redis has lost the member list and its locks. */
  losesMembers(): void {
    this.membersLostAt = this.now;
    this.conditional.lostAt = this.now;
  }

  /** Restores a former master with its own data and run id. */
  return(old: RedisServer): void {
    this.redis = old;
    this.returnedAt = this.now;
    this.conditional.lostAt = this.now;
  }

  readonly after = (ms: number, label: string, run: () => void): void => {
    this.simulation.scheduler.after(ms, label, run);
  };

  #newMaster(held?: Keyspace): RedisServer {
    const options = {
      wallOffsetMs: this.random.between(-5000, 5000),
      clockRate: this.random.between(0.99, 1.01),
    };
    const redis = this.simulation.redis(`redis${++this.#masters}`, options, held);
    const losing = this.simulation.random.stream('losses');
    redis.losesMessage = ({ name }) => losing.chance(this.losses.get(name) ?? 0);
    return redis;
  }

  #newInstance(at: number): Instance {
    const { disconnectedWrites, disconnectedMaxAgeMs, commandTimeoutMs, isCluster = false } = this.options;
    const clocks = {
      wallOffsetMs: this.random.between(-5000, 5000),
      clockRate: this.random.between(0.96, 1.04),
      timerLatenessMs: this.random.pick([1, 5, 20]),
    };
    const name = `i${at + 1}`;
    return new Instance({
      process: this.simulation.process(name, clocks),
      network: this.simulation.network,
      upstream: this.upstream,
      findRedis: () => this.redis,
      disconnectedWrites,
      disconnectedMaxAgeMs,
      commandTimeoutMs,
      isCluster,
      changes: this.changes,
      front: this.front,
    });
  }
}

/**
 * Returns pairs of handles in the same group, so that a message about one handle reveals a lost message about
 * the other.
 */
function handlesInPairs(): string[] {
  const handles: string[] = [];
  const others = new Map<number, string>();
  for (let number = 0; handles.length < 2 * HANDLE_PAIRS; number++) {
    const handle = `${PREFIX}/${number}`;
    const group = groupOf(handleRef(handle, false).key);
    const other = others.get(group);
    if (other === undefined) others.set(group, handle);
    else handles.push(other, handle);
  }
  return handles;
}
