// A world on virtual time: processes, Redis servers and the network between them, all determined by one seed.
import { Scheduler } from './clock.js';
import { LuaVm } from './lua-vm.js';
import { Network, type NetworkOptions } from './network.js';
import { Process, type ProcessOptions } from './process.js';
import { Random } from './random.js';
import { type RedisDialer, dialer } from './redis-client.js';
import type { Keyspace } from './redis-keyspace.js';
import { RedisServer } from './redis.js';
import { Trace } from './trace.js';

export interface SimulationOptions {
  network?: NetworkOptions;
  /** Number of newest trace lines to retain. */
  keptLines?: number;
}

/** Created once, because scripts leave no state in it. */
let machine: Promise<LuaVm> | undefined;

export function luaVm(): Promise<LuaVm> {
  machine ??= LuaVm.create();
  return machine;
}

export class Simulation {
  readonly random: Random;
  readonly trace: Trace;
  readonly scheduler: Scheduler;
  readonly network: Network;
  readonly #vm: LuaVm;

  private constructor(seed: number, { network, keptLines }: SimulationOptions, vm: LuaVm) {
    this.random = new Random(seed);
    this.trace = new Trace(keptLines);
    this.scheduler = new Scheduler(this.random, this.trace);
    this.network = new Network(this.scheduler, this.random, network);
    this.#vm = vm;
  }

  static async create(seed: number, options: SimulationOptions = {}): Promise<Simulation> {
    return new Simulation(seed, options, await luaVm());
  }

  process(name: string, options: ProcessOptions = {}): Process {
    return new Process(name, this.scheduler, this.random, options);
  }

  /** Creates a server, empty or with the data of a dump or replica. */
  redis(name: string, options: ProcessOptions = {}, held?: Keyspace): RedisServer {
    const host = this.process(name, { ...options, isSynchronous: true });
    return new RedisServer({ host, random: this.random, vm: this.#vm }, held);
  }

  /** Returns the dialer of a process. A failover changes the server that `findServer` returns. */
  dialer(client: Process, findServer: () => RedisServer): RedisDialer {
    return dialer(this.network, client, findServer);
  }
}
