// Faults of the simulation. Each method starts a fault, which is momentary or ends later by itself.
import type { Instance } from './instance.js';
import type { Pause } from './process.js';
import type { Random } from './random.js';
import type { Keyspace } from './redis-keyspace.js';
import type { RedisServer } from './redis.js';
import type { World } from './world.js';

const DUMP_EVERY_MS = 5000;
const KEPT_DUMPS = 6;
const MAX_LAG_MS = 5000;
/** A former master becomes master again only after the leases it granted have ended. */
const MIN_HUNG_MS = 2500;
/** Steps of the clock of Redis while it does not run, in ms. The lease of a webhook's reader in a dump lasts longer by a step. */
const SHORT_STEPS_MS = [0, 1000, -1000, 10_000, -10_000];
const STOPPED_STEPS_MS = [...SHORT_STEPS_MS, 3_600_000, -3_600_000];

export class Faults {
  readonly #world: World;
  readonly #random: Random;
  readonly #clocks: Random;
  /** Steps of the clocks of running servers, in seconds: each stays within a second. */
  readonly #steps = new WeakMap<RedisServer, { at: number; side: number }>();
  #dumps: Keyspace[] = [];
  #active = 0;

  constructor(world: World) {
    this.#world = world;
    this.#random = world.simulation.random.stream('faults');
    this.#clocks = world.simulation.random.stream('clocks of Redis');
    this.#saveAgain();
  }

  /** Whether some faults have not ended yet. */
  get areActive(): boolean {
    return this.#active > 0;
  }

  loseMessages(): void {
    const { losses } = this.#world;
    const { name } = this.#instance();
    losses.set(name, this.#random.pick([0.3, 1]));
    this.#later(() => {
      losses.delete(name);
    });
  }

  loseConnection(): void {
    const connections = this.#world.simulation.network.connections();
    if (connections.length === 0) return;
    const connection = this.#random.pick(connections);
    if (this.#random.chance(0.7)) connection.reset();
    else connection.forgetAtServer();
  }

  cutFromRedis(): void {
    const { simulation, redis } = this.#world;
    const line = simulation.network.line(this.#instance().process, redis);
    line.cut();
    this.#later(() => {
      line.mend();
    });
  }

  cutFromUpstream(): void {
    const line = this.#world.upstream.line(this.#instance().process);
    line.cut();
    this.#later(() => {
      line.mend();
    });
  }

  slowLine(): void {
    const { process } = this.#instance();
    const line = this.#world.simulation.network.line(process, this.#world.redis);
    const extraMs = this.#random.pick([60, 300, 1200]);
    if (this.#random.chance(0.5)) line.extraToServerMs = extraMs;
    else line.extraToClientMs = extraMs;
    this.#later(() => {
      line.extraToServerMs = 0;
      line.extraToClientMs = 0;
    });
  }

  slowUpstream(): void {
    const { upstream } = this.#world;
    upstream.extraMs = this.#random.pick([500, 3000]);
    this.#later(() => {
      upstream.extraMs = 0;
    });
  }

  pauseProcess(kind: Pause): void {
    const { process } = this.#instance();
    process.pause(kind);
    this.#later(() => {
      process.resume();
    });
  }

  kill(): void {
    const instance = this.#instance();
    instance.kill();
    this.#world.history.killed(instance.name);
    this.#world.strict.killed(instance.name);
    this.#later(() => {
      instance.start();
    });
  }

  stepClock(): void {
    this.#instance().process.stepWallClock(this.#random.between(-8000, 8000));
  }

  stepRedisClock(): void {
    this.#stepRunning(this.#world.redis, this.#clocks.pick([-1, 1]));
  }

  freezeRedis(): void {
    const { redis } = this.#world;
    if (redis.host.isPaused) return;
    redis.host.pause('stopped');
    this.#laterAt(redis, () => {
      redis.host.resume();
    });
  }

  restartRedis(from: 'empty' | 'dump'): void {
    const { redis } = this.#world;
    if (!redis.host.isAlive) return;
    redis.host.kill();
    this.#laterAt(redis, () => {
      redis.host.stepWallClock(this.#clocks.pick(this.#world.changes ? SHORT_STEPS_MS : STOPPED_STEPS_MS));
      this.#steps.delete(redis);
      redis.restart(from === 'dump' && this.#dumps.length > 0 ? this.#random.pick(this.#dumps) : undefined);
      this.#world.losesMembers();
    });
  }

  failOver(): void {
    const { redis } = this.#world;
    if (!redis.host.isAlive) return;
    const held = redis.replica(this.#random.between(0, MAX_LAG_MS));
    redis.host.kill();
    this.#laterAt(redis, () => {
      this.#world.promote(held);
    });
  }

  /** Hangs the master and promotes a replica. When the replica dies, the old master returns unaware. */
  failBack(): void {
    const old = this.#world.redis;
    if (!old.host.isAlive || old.host.isPaused) return;
    old.host.pause('stopped');
    const mayReturnAt = this.#world.now + MIN_HUNG_MS;
    this.#laterAt(old, () => {
      this.#world.promote(old.replica(this.#random.between(0, MAX_LAG_MS)));
      const { redis } = this.#world;
      // Sentinels notify clients of a failover; if only an address moves, nothing notifies them.
      if (this.#random.chance(0.5)) this.#resetConnections(old);
      this.#later(() => {
        this.#endAfter(Math.max(0, mayReturnAt - this.#world.now), 'a former master returns', () => {
          if (this.#world.redis !== redis) return;
          redis.host.kill();
          if (this.#clocks.chance(0.5)) this.#stepRunning(old, -1);
          old.host.resume();
          this.#world.return(old);
        });
      });
    });
  }

  evict(): void {
    const { redis } = this.#world;
    const keys = [...redis.keyspace.keys()].filter(
      (key) => key.endsWith(':state') || key.endsWith('members'),
    );
    const evicted = this.#random.chance(0.3) ? keys.filter((key) => key.endsWith('members')) : keys;
    for (const key of evicted.length > 0 ? [this.#random.pick(evicted)] : []) redis.evict(key);
  }

  flush(): void {
    this.#world.redis.keyspace.clear();
    this.#world.losesMembers();
    this.#world.conditional.flushedAt = this.#world.now;
  }

  #stepRunning(server: RedisServer, seconds: number): void {
    const { at, side } = this.#steps.get(server) ?? { at: 0, side: seconds };
    if (![0, side].includes(at + seconds)) return;
    this.#steps.set(server, { at: at + seconds, side });
    server.host.stepWallClock(1000 * seconds);
  }

  #resetConnections(server: RedisServer): void {
    for (const connection of this.#world.simulation.network.connections())
      if (connection.server === server) connection.reset();
  }

  #instance(): Instance {
    return this.#random.pick(this.#world.instances);
  }

  /** Ends a fault later, unless a different fault has since replaced, killed or started this master. */
  #laterAt(master: RedisServer, end: () => void): void {
    const { life } = master.host;
    this.#later(() => {
      if (this.#world.redis === master && master.host.life === life) end();
    });
  }

  /** Ends a fault after a delay that is shorter than a lease, about as long, or much longer. */
  #later(end: () => void): void {
    const [min, max] = this.#random.pick([
      [20, 800],
      [800, 4000],
      [800, 4000],
      [4000, 15_000],
    ] as const);
    this.#endAfter(this.#random.between(min, max), 'a fault ends', end);
  }

  #endAfter(ms: number, label: string, end: () => void): void {
    this.#active++;
    this.#world.after(ms, label, () => {
      end();
      this.#active--;
    });
  }

  #saveAgain(): void {
    this.#world.after(DUMP_EVERY_MS, 'Redis saves', () => {
      const { redis } = this.#world;
      if (redis.host.isAlive) this.#dumps = [...this.#dumps, redis.dump()].slice(-KEPT_DUMPS);
      this.#saveAgain();
    });
  }
}
